// LineLog: whole lines to a file, stdout or stderr, from a thread of its own, so that a slow disk
// or a full pipe holds up nobody who writes. Bounded by the bytes that wait; beyond them a line is
// lost and counted, and so are lines that the system does not take. Lines that come within kGather
// of each other leave in one write. Thread: any.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/metrics.h"
#include "base/mutex.h"

namespace sluice {

class LineLog {
 public:
  static constexpr std::chrono::milliseconds kGather{20};

  // `target`: "stdout", "stderr" or a file, which is made (0640) or appended to. `lost` counts
  // lines. Errors name the target.
  [[nodiscard]] static Result<std::unique_ptr<LineLog>> open(const std::string& target,
                                                             std::size_t max_waiting_bytes,
                                                             Counter lost);
  // Writes what waits first.
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  // `line` has no line end. Never waits for the target.
  void write(std::string_view line) noexcept EXCLUDES(mutex_);

 private:
  LineLog(int fd, std::size_t max_waiting_bytes, Counter lost);
  void run() noexcept EXCLUDES(mutex_);
  // Waits for lines and takes them all; false: it is over, and there are none.
  [[nodiscard]] bool take(std::string& lines) noexcept EXCLUDES(mutex_);
  void put(std::string_view lines) noexcept;

  const int fd_;
  const std::size_t max_waiting_bytes_;
  Counter lost_;
  Mutex mutex_;
  CondVar wake_;
  std::string waiting_ GUARDED_BY(mutex_);
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace sluice
