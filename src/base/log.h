// Logging: one line per event on stderr, with a level, a component and a message made by the
// caller. Nothing of a prompt, an answer or a key is ever passed here, at any level. Control
// characters are escaped, so that an event stays one line whatever a client sent. Thread: any.
#pragma once

#include <string_view>

namespace sluice {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

void set_log_level(LogLevel level) noexcept;

void log(LogLevel level, std::string_view component, std::string_view message) noexcept;

inline void log_debug(std::string_view component, std::string_view message) noexcept {
  log(LogLevel::kDebug, component, message);
}
inline void log_info(std::string_view component, std::string_view message) noexcept {
  log(LogLevel::kInfo, component, message);
}
inline void log_warning(std::string_view component, std::string_view message) noexcept {
  log(LogLevel::kWarning, component, message);
}
inline void log_error(std::string_view component, std::string_view message) noexcept {
  log(LogLevel::kError, component, message);
}

}  // namespace sluice
