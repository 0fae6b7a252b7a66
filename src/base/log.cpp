#include "base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "base/concat.h"
#include "base/line_log.h"

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

const char* color_of(spdlog::level::level_enum level) noexcept {
  switch (level) {
    case spdlog::level::err:
      return "\x1b[31m";
    case spdlog::level::warn:
      return "\x1b[33m";
    case spdlog::level::info:
      return "\x1b[32m";
    default:
      return "\x1b[36m";
  }
}

// stderr: at once, or through lines that another thread writes. spdlog's own sinks write at once.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void use(LineLog* lines) {
    const std::lock_guard lock(mutex_);
    lines_ = lines;
  }
  void wait_written(std::chrono::milliseconds patience) {
    const std::lock_guard lock(mutex_);
    if (lines_ != nullptr) lines_->flush(patience);
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t formatted;
    formatter_->format(message, formatted);
    std::string line(formatted.data(), formatted.size());
    if (colored_) {
      line.insert(message.color_range_end, "\x1b[m");
      line.insert(message.color_range_start, color_of(message.level));
    }
    if (lines_ == nullptr) {
      std::fwrite(line.data(), 1, line.size(), stderr);
      std::fflush(stderr);  // it is buffered once it has been reopened
    } else {
      lines_->write(std::string_view(line).substr(0, line.size() - 1));
    }
  }
  void flush_() override {}

  const bool colored_ = ::isatty(STDERR_FILENO) == 1;
  LineLog* lines_ = nullptr;
};

const std::shared_ptr<StderrSink>& sink() {
  static const auto instance = std::make_shared<StderrSink>();
  return instance;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("sluice", sink());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v");
    return made;
  }();
  return *instance;
}

std::atomic<std::uint64_t> lost_lines = 0;

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

LogThread::LogThread() {
  constexpr std::size_t kMaxWaitingBytes = 1 << 20;
  auto lines = LineLog::open(
      "stderr", {.max_waiting_bytes = kMaxWaitingBytes,
                 .gather = std::chrono::milliseconds{0},  // a crash loses what it finds waiting
                 .on_lost = [](std::uint64_t lost) { lost_lines += lost; },
                 .lost_line =
                     [](std::uint64_t lost) {
                       return concat("log: ", lost, " lines were lost, for stderr took none");
                     }});
  if (!lines) return;  // stderr is closed: nobody reads the log, and writing to it can't block
  lines_ = std::move(*lines);
  sink()->use(lines_.get());
}

LogThread::~LogThread() { sink()->use(nullptr); }

void flush_log(std::chrono::milliseconds patience) noexcept try {
  sink()->wait_written(patience);
} catch (...) {
  // A lock that can't be taken: the process is ending anyway.
}

std::uint64_t lost_log_lines() noexcept { return lost_lines; }

}  // namespace sluice
