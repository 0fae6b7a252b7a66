// The kinds of flags that commands have in common, over CLI11: numbers with a range and a unit,
// durations, choices by name, and every bound of Limits. Thread: main.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace sluice {

struct GatewayLimits;
struct Limits;

// Checks for a flag's value, to CLI11: its own take NaN, and numbers that its parser wrapped
// around.
using FlagCheck = std::function<std::string(const std::string&)>;
[[nodiscard]] FlagCheck within(std::uint64_t least, std::uint64_t most);
[[nodiscard]] FlagCheck within(double least, double most);

// `flag` without its dashes. A `unit` "bytes" takes sizes with units (50MiB; 1 MB is 1 MiB).
void add_number(CLI::App& app, const std::string& flag, std::uint32_t& field,
                const std::string& help, std::string_view unit, std::uint32_t least = 1,
                std::uint32_t most = std::numeric_limits<std::uint32_t>::max());
void add_number(CLI::App& app, const std::string& flag, std::uint64_t& field,
                const std::string& help, std::string_view unit, std::uint64_t least = 1,
                std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
void add_number(CLI::App& app, const std::string& flag, double& field, const std::string& help,
                std::string_view unit, double least, double most);

// A flag that takes "true" or "false".
void add_boolean(CLI::App& app, const std::string& flag, bool& field, const std::string& help);

inline constexpr std::uint64_t kLongestMs = std::uint64_t{10} * 365 * 24 * 3600 * 1000;
void add_ms(CLI::App& app, const std::string& flag, std::chrono::milliseconds& field,
            const std::string& help, std::uint64_t least = 0, std::uint64_t most = kLongestMs);

// A flag that may be given many times; "" is none, for the default's sake. `type`: of each.
void add_list(CLI::App& app, const std::string& flag, std::vector<std::string>& field,
              const std::string& type, const std::string& help);

// One of `names`; `set` gets its position.
void add_named(CLI::App& app, const std::string& flag, const std::vector<std::string>& names,
               std::size_t given, const std::string& help, std::function<void(std::size_t)> set);

template <typename Enum>
void add_choice(CLI::App& app, const std::string& flag, Enum& field,
                std::vector<std::pair<std::string, Enum>> choices, const std::string& help) {
  std::vector<std::string> names;
  std::size_t given = 0;
  for (const auto& [name, value] : choices) {
    if (value == field) given = names.size();
    names.push_back(name);
  }
  add_named(app, flag, names, given, help,
            [&field, choices = std::move(choices)](std::size_t at) { field = choices[at].second; });
}

void add_limits(CLI::App& app, Limits& limits);
void add_limits(CLI::App& app, GatewayLimits& limits);

}  // namespace sluice
