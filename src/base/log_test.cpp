#include "base/log.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sluice
