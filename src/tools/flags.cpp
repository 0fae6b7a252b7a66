#include "tools/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <type_traits>

#include "base/concat.h"
#include "contract/limit_table.h"
#include "gateway/gateway_limit_table.h"

namespace sluice {
namespace {

template <typename Number>
std::string text_of(Number number) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.begin(), text.end(), number).ptr};
}

template <typename Number>
FlagCheck check_within(Number least, Number most) {
  return [least, most](const std::string& text) -> std::string {
    Number number{};
    const char* const end = text.data() + text.size();
    const auto [parsed, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc{} && parsed == end && number >= least && number <= most) return {};
    return concat("\"", text, "\" is not a number from ", text_of(least), " to ", text_of(most));
  };
}

template <typename Number>
std::string range_text(Number least, Number most) {
  return concat("in [", text_of(least), " - ", text_of(most), "]");
}

template <typename Number>
void add(CLI::App& app, const std::string& flag, Number& field, const std::string& help,
         std::string_view unit, Number least, Number most) {
  CLI::Option* option = app.add_option("--" + flag, field, help)->capture_default_str();
  if (unit == "bytes") option->transform(CLI::AsSizeValue(false));
  using Wide = std::conditional_t<std::is_integral_v<Number>, std::uint64_t, double>;
  option->check(within(Wide{least}, Wide{most}), range_text(least, most))
      ->type_name(std::string(unit));
}

// What works, where that is less than the field's type holds.
struct LimitRange {
  std::string_view flag;
  std::uint64_t least;
  std::uint64_t most;
};

constexpr LimitRange kLimitRanges[] = {
    {"max-sequences", 1, 1 << 20},  // each has a slot from the start
    {"max-step-tokens", 1, 1 << 24},
    {"max-concurrent-streams", 1, 0x7fffffff},                // an int, to gRPC
    {"max-message-bytes", 64 << 10, 1 << 30},                 // an answer's last message must fit
    {"grpc-memory-bytes", 64 << 20, std::uint64_t{1} << 62},  // less stops every connection
    {"keepalive-time-ms", 1000, kLongestMs},
    {"keepalive-timeout-ms", 1000, kLongestMs},
    {"max-connection-age-ms", 1000, kLongestMs},
};

LimitRange range_of(std::string_view flag, std::uint64_t least, std::uint64_t most) {
  for (const LimitRange& range : kLimitRanges) {
    if (range.flag == flag) return range;
  }
  return {flag, least, most};
}

// What visit_limits calls for each bound.
struct AddLimit {
  CLI::App& app;

  template <typename Field>
  void operator()(const char* flag, Field& field, const char* unit, const char* help) const {
    if constexpr (std::is_same_v<Field, std::chrono::milliseconds>) {
      const LimitRange range = range_of(flag, 0, kLongestMs);
      add_ms(app, flag, field, help, range.least, range.most);
    } else if constexpr (std::is_same_v<Field, double>) {
      add_number(app, flag, field, help, unit, 1.0, 1000.0);
    } else {
      const LimitRange range = range_of(flag, 1, std::numeric_limits<Field>::max());
      add_number(app, flag, field, help, unit, static_cast<Field>(range.least),
                 static_cast<Field>(range.most));
    }
  }
};

}  // namespace

FlagCheck within(std::uint64_t least, std::uint64_t most) { return check_within(least, most); }
FlagCheck within(double least, double most) { return check_within(least, most); }

void add_number(CLI::App& app, const std::string& flag, std::uint32_t& field,
                const std::string& help, std::string_view unit, std::uint32_t least,
                std::uint32_t most) {
  add(app, flag, field, help, unit, least, most);
}

void add_number(CLI::App& app, const std::string& flag, std::uint64_t& field,
                const std::string& help, std::string_view unit, std::uint64_t least,
                std::uint64_t most) {
  add(app, flag, field, help, unit, least, most);
}

void add_number(CLI::App& app, const std::string& flag, double& field, const std::string& help,
                std::string_view unit, double least, double most) {
  add(app, flag, field, help, unit, least, most);
}

void add_boolean(CLI::App& app, const std::string& flag, bool& field, const std::string& help) {
  app.add_option("--" + flag, field, help)->default_str(field ? "true" : "false");
}

void add_ms(CLI::App& app, const std::string& flag, std::chrono::milliseconds& field,
            const std::string& help, std::uint64_t least, std::uint64_t most) {
  app.add_option_function<std::int64_t>(
         "--" + flag, [&field](std::int64_t value) { field = std::chrono::milliseconds(value); },
         help)
      ->check(within(least, most), range_text(least, most))
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
