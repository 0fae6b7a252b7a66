// LineLog: whole lines to a file, stdout or stderr, from a thread of its own, so that a slow disk
// or a full pipe holds up nobody who writes. Bounded by the bytes that wait; beyond them a line is
// lost and counted, and so are lines that the system does not take. Lines that come within `gather`
// of each other leave in one write. At its end it waits for its target no longer than kLastWords.
// Thread: any.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/mutex.h"

namespace sluice {

struct LineLogOptions {
  std::size_t max_waiting_bytes = 1 << 20;
  std::chrono::milliseconds gather{20};
  // Counts lines; called on any thread.
  std::function<void(std::uint64_t lines)> on_lost = [](std::uint64_t) {};
  // What to write when there is room again after lines were lost, without a line end; null:
  // nothing.
  std::function<std::string(std::uint64_t lines)> lost_line = nullptr;
};

class LineLog {
 public:
  static constexpr std::chrono::milliseconds kLastWords{1000};

  // `target`: "stdout", "stderr" or a file, which is made (0640) or appended to. Errors name it.
  [[nodiscard]] static Result<std::unique_ptr<LineLog>> open(const std::string& target,
                                                             LineLogOptions options);
  // Writes what waits first.
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  // `line` has no line end. Never waits for the target.
  void write(std::string_view line) noexcept EXCLUDES(mutex_);

  // Waits until nothing is left to write, but no longer than `patience`.
  void flush(std::chrono::milliseconds patience) noexcept EXCLUDES(mutex_);

 private:
  using Time = std::chrono::steady_clock::time_point;

  LineLog(int fd, LineLogOptions options);
  void run() noexcept EXCLUDES(mutex_);
  // Waits for lines and takes them all; false: it is over, and there are none.
  [[nodiscard]] bool take(std::string& lines) noexcept EXCLUDES(mutex_);
  void put(std::string_view lines) noexcept EXCLUDES(mutex_);
  // Waits until the target takes something; false: it does not, and it is time to end.
  [[nodiscard]] bool wait_writable() noexcept EXCLUDES(mutex_);
  void lose(std::uint64_t lines) noexcept EXCLUDES(mutex_);
  void tell_lost() noexcept EXCLUDES(mutex_);

  const int fd_;
  const std::size_t most_at_once_;  // bytes of a write that can't block once the target is writable
  const LineLogOptions options_;
  Mutex mutex_;
  CondVar wake_;
  CondVar idle_;
  std::string waiting_ GUARDED_BY(mutex_);
  bool writing_ GUARDED_BY(mutex_) = false;
  std::uint64_t untold_ GUARDED_BY(mutex_) = 0;  // lines lost since the last lost_line
  Time end_ GUARDED_BY(mutex_) = Time::max();    // it is over; by then the thread has ended
  std::thread thread_;
};

}  // namespace sluice
