// Logging: one line per event on stderr, with a level, a component and a message made by the
// caller. Nothing of a prompt, an answer or a key is ever passed here, at any level. Control
// characters are escaped, so that an event stays one line whatever a client sent. In a server lines
// are written by a LogThread, so that a stderr that nobody reads holds up nobody who logs.
// Thread: any.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
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

class LineLog;

// While it lives lines go to stderr through a LineLog of 1 MiB: beyond it they are lost, counted,
// and a line tells how many when stderr takes some again. At its end it writes what waits, and
// waits for stderr no longer than a second. One at a time.
class LogThread {
 public:
  LogThread();
  ~LogThread();
  LogThread(const LogThread&) = delete;
  LogThread& operator=(const LogThread&) = delete;

 private:
  std::unique_ptr<LineLog> lines_;
};

// Waits until the lines so far are written, but no longer than `patience`: before an abort.
void flush_log(std::chrono::milliseconds patience) noexcept;

// Since the process began.
[[nodiscard]] std::uint64_t lost_log_lines() noexcept;

}  // namespace sluice
