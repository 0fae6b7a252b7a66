#include "base/line_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "base/concat.h"

namespace sluice {
namespace {

// A descriptor of our own in each case, or -1.
int open_target(const std::string& target) noexcept {
  if (target == "stdout") return ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (target == "stderr") return ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  return ::open(target.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
}

}  // namespace

Result<std::unique_ptr<LineLog>> LineLog::open(const std::string& target,
                                               std::size_t max_waiting_bytes, Counter lost) {
  const int fd = open_target(target);
  if (fd < 0)
    return fail(Code::kUnavailable, concat("can't write to ", target, ": ", std::strerror(errno)));
  return std::unique_ptr<LineLog>(new LineLog(fd, max_waiting_bytes, lost));
}

LineLog::LineLog(int fd, std::size_t max_waiting_bytes, Counter lost)
    : fd_(fd), max_waiting_bytes_(max_waiting_bytes), lost_(lost), thread_([this] { run(); }) {}

LineLog::~LineLog() {
  {
    const MutexLock lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
  ::close(fd_);
}

void LineLog::write(std::string_view line) noexcept try {
  bool first = false;
  {
    const MutexLock lock(mutex_);
    if (waiting_.size() + line.size() >= max_waiting_bytes_) {
      lost_.add();
      return;
    }
    first = waiting_.empty();
    waiting_.append(line) += '\n';
  }
  if (first) wake_.notify_one();
} catch (const std::exception&) {
  lost_.add();  // out of memory
}

void LineLog::run() noexcept {
  std::string lines;
  while (take(lines)) {
    put(lines);
    lines.clear();
  }
}

bool LineLog::take(std::string& lines) noexcept {
  const MutexLock lock(mutex_);
  while (waiting_.empty() && !over_) wake_.wait(mutex_);
  if (!over_) wake_.wait_until(mutex_, std::chrono::steady_clock::now() + kGather);
  lines.swap(waiting_);
  return !lines.empty();
}

void LineLog::put(std::string_view lines) noexcept {
  while (!lines.empty()) {
    const ssize_t written = ::write(fd_, lines.data(), lines.size());
    if (written > 0) {
      lines.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      lost_.add(static_cast<double>(std::count(lines.begin(), lines.end(), '\n')));
      return;
    }
  }
}

}  // namespace sluice
