#include "base/line_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <exception>

#include "base/concat.h"

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kLook{100};  // at whether it is over, while the target is full

// A descriptor of our own in each case, or -1.
int open_target(const std::string& target) noexcept {
  if (target == "stdout") return ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (target == "stderr") return ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  return ::open(target.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
}

// A pipe that is writable takes PIPE_BUF bytes without blocking, and may block on more.
std::size_t most_at_once(int fd) noexcept {
  struct stat status {};
  const bool is_file = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  return is_file ? std::size_t{SSIZE_MAX} : std::size_t{PIPE_BUF};
}

}  // namespace

Result<std::unique_ptr<LineLog>> LineLog::open(const std::string& target, LineLogOptions options) {
  const int fd = open_target(target);
  if (fd < 0)
    return fail(Code::kUnavailable, concat("can't write to ", target, ": ", std::strerror(errno)));
  return std::unique_ptr<LineLog>(new LineLog(fd, std::move(options)));
}

LineLog::LineLog(int fd, LineLogOptions options)
    : fd_(fd),
      most_at_once_(most_at_once(fd)),
      options_(std::move(options)),
      thread_([this]() noexcept { run(); }) {}

LineLog::~LineLog() {
  {
    const MutexLock lock(mutex_);
    end_ = std::chrono::steady_clock::now() + kLastWords;
  }
  wake_.notify_one();
  thread_.join();
  ::close(fd_);
}

void LineLog::write(std::string_view line) noexcept try {
  bool first = false;
  bool fits = false;
  {
    const MutexLock lock(mutex_);
    fits = waiting_.size() + line.size() < options_.max_waiting_bytes;
    if (fits) {
      first = waiting_.empty();
      waiting_.append(line) += '\n';
    }
  }
  if (!fits) lose(1);
  if (first) wake_.notify_one();
} catch (const std::exception&) {
  lose(1);  // out of memory
}

void LineLog::flush(std::chrono::milliseconds patience) noexcept {
  const Time until = std::chrono::steady_clock::now() + patience;
  const MutexLock lock(mutex_);
  while ((writing_ || !waiting_.empty()) && std::chrono::steady_clock::now() < until)
    idle_.wait_until(mutex_, until);
}

void LineLog::run() noexcept {
  std::string lines;
  while (take(lines)) {
    put(lines);
    lines.clear();
    tell_lost();
  }
}

bool LineLog::take(std::string& lines) noexcept {
  const MutexLock lock(mutex_);
  writing_ = false;
  idle_.notify_all();
  while (waiting_.empty() && end_ == Time::max()) wake_.wait(mutex_);
  if (end_ == Time::max() && options_.gather.count() > 0)
    wake_.wait_until(mutex_, std::chrono::steady_clock::now() + options_.gather);
  lines.swap(waiting_);
  writing_ = true;
  return !lines.empty();
}

void LineLog::put(std::string_view lines) noexcept {
  while (!lines.empty()) {
    const bool writable = wait_writable();
    const ssize_t written =
        writable ? ::write(fd_, lines.data(), std::min(lines.size(), most_at_once_)) : -1;
    if (written > 0) {
      lines.remove_prefix(static_cast<std::size_t>(written));
    } else if (!writable || (errno != EINTR && errno != EAGAIN)) {
      return lose(static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n')));
    }
  }
}

bool LineLog::wait_writable() noexcept {
  pollfd target{fd_, POLLOUT, 0};
  while (::poll(&target, 1, static_cast<int>(kLook.count())) <= 0) {
    const MutexLock lock(mutex_);
    if (std::chrono::steady_clock::now() >= end_) return false;
  }
  return true;
}

void LineLog::lose(std::uint64_t lines) noexcept {
  options_.on_lost(lines);
  const MutexLock lock(mutex_);
  untold_ += lines;
}

void LineLog::tell_lost() noexcept try {
  if (!options_.lost_line) return;
  std::uint64_t lines = 0;
  {
    const MutexLock lock(mutex_);
    lines = std::exchange(untold_, 0);
  }
  if (lines > 0) put(options_.lost_line(lines) + '\n');
} catch (const std::exception&) {
  // Out of memory: they are counted.
}

}  // namespace sluice
