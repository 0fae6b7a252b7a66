#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <memory>
#include <string>

#include "base/concat.h"

namespace sluice {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = spdlog::stderr_color_mt("sluice");
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
    return made;
  }();
  return *instance;
}

std::string one_line(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

}  // namespace

void set_log_level(LogLevel level) noexcept { logger().set_level(to_spdlog(level)); }

void log(LogLevel level, std::string_view component, std::string_view message) noexcept try {
  if (!logger().should_log(to_spdlog(level))) return;
  logger().log(to_spdlog(level), "{}: {}", one_line(component), one_line(message));
} catch (...) {
  // A log line that can't be made or written must not take a request with it.
}

}  // namespace sluice
