#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/check.h"

namespace sluice {
namespace {

TEST(Log, AnEventStaysOneLineWhateverItHolds) {
  set_log_level(LogLevel::kInfo);
  testing::internal::CaptureStderr();
  log_info("test", "a\r\nb\x1b[31m");
  const std::string out = testing::internal::GetCapturedStderr();
  EXPECT_NE(out.find("test: a\\x0d\\x0ab\\x1b[31m\n"), std::string::npos) << out;
}

TEST(Log, WhatIsBelowTheLevelIsNotWritten) {
  set_log_level(LogLevel::kError);
  testing::internal::CaptureStderr();
  log_warning("test", "hush");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  set_log_level(LogLevel::kInfo);
}

// A pipe in stderr's place.
class Pipe {
 public:
  Pipe() {
    EXPECT_EQ(::pipe(ends_), 0);
    ::dup2(ends_[1], STDERR_FILENO);
    ::close(ends_[1]);
  }
  ~Pipe() {
    ::dup2(stderr_, STDERR_FILENO);
    ::close(stderr_);
    ::close(ends_[0]);
  }
  [[nodiscard]] std::string read() {
    std::string text(64 << 10, '\0');
    text.resize(
        static_cast<std::size_t>(std::max<ssize_t>(::read(ends_[0], text.data(), text.size()), 0)));
    return text;
  }

 private:
  const int stderr_ = ::dup(STDERR_FILENO);
  int ends_[2]{};
};

TEST(Log, AStderrThatNobodyReadsHoldsUpNobodyAndTellsWhatItLost) {
  const std::uint64_t lost_before = lost_log_lines();
  Pipe pipe;
  const LogThread thread;
  while (lost_log_lines() == lost_before) log_info("test", std::string(1000, 'x'));
  std::string read;
  while (read.find("lines were lost") == std::string::npos) read += pipe.read();
  EXPECT_NE(read.find("test: xxx"), std::string::npos);
}

TEST(Log, TheThreadWritesWhatWaitsBeforeItEnds) {
  Pipe pipe;
  {
    const LogThread thread;
    log_info("test", "last words");
  }
  EXPECT_NE(pipe.read().find("test: last words\n"), std::string::npos);
}

TEST(LogDeathTest, AFailedCheckWritesWhatWaitsFirst) {
  EXPECT_DEATH(
      {
        const LogThread thread;
        log_info("test", "before");
        CHECK(1 > 2, "arithmetic holds");
      },
      "test: before\n.*CHECK.1 > 2.: arithmetic holds");
}

}  // namespace
}  // namespace sluice
