#include "tools/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <type_traits>

#include "contract/limit_table.h"
#include "gateway/gateway_limit_table.h"

namespace sluice {
namespace {

constexpr std::int64_t kLongestMs = std::int64_t{10} * 365 * 24 * 3600 * 1000;

template <typename Number>
void add(CLI::App& app, const std::string& flag, Number& field, const std::string& help,
         std::string_view unit, Number least, Number most) {
  CLI::Option* option = app.add_option("--" + flag, field, help)->capture_default_str();
  if (unit == "bytes") option->transform(CLI::AsSizeValue(false));
  option->check(CLI::Range(least, most))->type_name(std::string(unit));
}

// What visit_limits calls for each bound.
struct AddLimit {
  CLI::App& app;

  template <typename Field>
  void operator()(const char* flag, Field& field, const char* unit, const char* help) const {
    if constexpr (std::is_same_v<Field, std::chrono::milliseconds>) {
      add_ms(app, flag, field, help);
    } else if constexpr (std::is_same_v<Field, double>) {
      add_number(app, flag, field, help, unit, 1.0, 1000.0);
    } else {
      add_number(app, flag, field, help, unit);
    }
  }
};

}  // namespace

void add_number(CLI::App& app, const std::string& flag, std::uint32_t& field,
                const std::string& help, std::string_view unit, std::uint32_t least,
                std::uint32_t most) {
  add(app, flag, field, help, unit, least, most);
}

void add_number(CLI::App& app, const std::string& flag, std::uint64_t& field,
                const std::string& help, std::string_view unit) {
  add(app, flag, field, help, unit, std::uint64_t{1}, std::numeric_limits<std::uint64_t>::max());
}

void add_number(CLI::App& app, const std::string& flag, double& field, const std::string& help,
                std::string_view unit, double least, double most) {
  add(app, flag, field, help, unit, least, most);
}

void add_boolean(CLI::App& app, const std::string& flag, bool& field, const std::string& help) {
  app.add_option("--" + flag, field, help)->default_str(field ? "true" : "false");
}

void add_ms(CLI::App& app, const std::string& flag, std::chrono::milliseconds& field,
            const std::string& help) {
  app.add_option_function<std::int64_t>(
         "--" + flag, [&field](std::int64_t value) { field = std::chrono::milliseconds(value); },
         help)
      ->check(CLI::Range(std::int64_t{0}, kLongestMs))
      ->type_name("MS")
      ->default_str(std::to_string(field.count()));
}

void add_list(CLI::App& app, const std::string& flag, std::vector<std::string>& field,
              const std::string& type, const std::string& help) {
  CLI::Option* const option = app.add_option_function<std::vector<std::string>>(
      "--" + flag,
      [&field](std::vector<std::string> given) {
        std::erase(given, "");
        field = std::move(given);
      },
      help);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->type_name(type);
  if (!field.empty()) option->default_str(field.front());
}

void add_named(CLI::App& app, const std::string& flag, const std::vector<std::string>& names,
               std::size_t given, const std::string& help, std::function<void(std::size_t)> set) {
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : "|") + name;
  app.add_option_function<std::string>(
         "--" + flag,
         [names, set = std::move(set)](const std::string& name) {
           set(static_cast<std::size_t>(std::find(names.begin(), names.end(), name) -
                                        names.begin()));
         },
         help)
      ->check(CLI::IsMember(names))
      ->type_name(known)
      ->default_str(names.at(given));
}

void add_limits(CLI::App& app, Limits& limits) { visit_limits(limits, AddLimit{app}); }

void add_limits(CLI::App& app, GatewayLimits& limits) {
  visit_gateway_limits(limits, AddLimit{app});
}

}  // namespace sluice
