#include "base/line_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "testing/folder.h"

namespace sluice {
namespace {

constexpr std::size_t kPlenty = 1 << 20;

class LineLogTest : public testing::Test {
 protected:
  std::unique_ptr<LineLog> open(const std::string& target, std::size_t max_bytes = kPlenty) {
    auto log = LineLog::open(target, options(max_bytes));
    EXPECT_TRUE(log) << log.error().message;
    return std::move(*log);
  }

  LineLogOptions options(std::size_t max_bytes = kPlenty) {
    return {.max_waiting_bytes = max_bytes,
            .on_lost = [this](std::uint64_t lines) { lost_ += lines; }};
  }

  TestFolder folder_;
  std::atomic<std::uint64_t> lost_ = 0;
};

TEST_F(LineLogTest, AppendsLinesInTheirOrder) {
  folder_.write("log", "before\n");
  {
    const auto log = open(folder_.file("log"));
    log->write("one");
    log->write("two");
  }
  open(folder_.file("log"))->write("three");
  EXPECT_EQ(folder_.read("log"), "before\none\ntwo\nthree\n");
  EXPECT_EQ(lost_, 0);
}

TEST_F(LineLogTest, LinesOfManyThreadsStayWhole) {
  {
    const auto log = open(folder_.file("log"));
    std::vector<std::thread> threads;
    for (char letter = 'a'; letter < 'e'; ++letter) {
      threads.emplace_back([&log, letter] {
        for (int i = 0; i < 1'000; ++i) log->write(std::string(50, letter));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::istringstream lines(folder_.read("log"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    ASSERT_EQ(line, std::string(50, line.at(0)));
  EXPECT_EQ(count, 4'000);
}

TEST_F(LineLogTest, AFullPipeLosesLinesAndHoldsUpNobody) {
  const std::string pipe = folder_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  constexpr int kLines = 10'000;  // more than the pipe and what may wait hold together
  std::size_t arrived = 0;
  {
    auto log = open(pipe, 64 << 10);
    for (int i = 0; i < kLines; ++i) log->write(std::string(99, 'x'));
    EXPECT_GT(lost_, 0);
    std::thread drain([&] {  // until the writer's end is closed; a read of none is no end before it
      ASSERT_EQ(::fcntl(reader, F_SETFL, 0), 0);
      std::vector<char> buffer(64 << 10);
      for (ssize_t got = 0; (got = ::read(reader, buffer.data(), buffer.size())) > 0;)
        arrived += static_cast<std::size_t>(got);
    });
    log.reset();
    drain.join();
  }
  ::close(reader);
  EXPECT_EQ(arrived, (kLines - lost_) * 100);
}

TEST_F(LineLogTest, WhatTheSystemDoesNotTakeIsCounted) {
  {
    const auto log = open("/dev/full");
    log->write("one");
    log->write("two");
  }
  EXPECT_EQ(lost_, 2);
}

TEST_F(LineLogTest, WhenThereIsRoomAgainALineTellsWhatWasLost) {
  const std::string pipe = folder_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  LineLogOptions told = options(64 << 10);
  told.lost_line = [](std::uint64_t lines) { return std::to_string(lines) + " lost"; };
  auto log = LineLog::open(pipe, std::move(told));
  ASSERT_TRUE(log);
  while (lost_ < 10) (*log)->write(std::string(99, 'x'));
  ASSERT_EQ(::fcntl(reader, F_SETFL, 0), 0);
  std::string read;
  std::array<char, 4096> some{};
  while (read.find(" lost\n") == std::string::npos) {
    const ssize_t got = ::read(reader, some.data(), some.size());
    ASSERT_GT(got, 0);
    read.append(some.data(), static_cast<std::size_t>(got));
  }
  EXPECT_THAT(read, testing::HasSubstr("x\n" + std::to_string(lost_) + " lost\n"));
  ::close(reader);
}

TEST_F(LineLogTest, APipeThatNobodyReadsHoldsUpNeitherAFlushNorTheEnd) {
  const std::string pipe = folder_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  auto log = open(pipe);
  for (int i = 0; i < 5'000; ++i) log->write(std::string(99, 'x'));
  log->flush(std::chrono::milliseconds{10});
  EXPECT_EQ(lost_, 0);
  log.reset();
  EXPECT_GT(lost_, 0);
  ::close(reader);
}

TEST_F(LineLogTest, AFlushReturnsWhenAllIsWritten) {
  const auto log = open(folder_.file("log"));
  log->write("one");
  log->flush(std::chrono::hours{1});
  EXPECT_EQ(folder_.read("log"), "one\n");
}

TEST_F(LineLogTest, ATargetThatCantBeOpenedIsNamed) {
  const auto log = LineLog::open(folder_.file("none/log"), options());
  ASSERT_FALSE(log);
  EXPECT_THAT(log.error().message, testing::HasSubstr(folder_.file("none/log")));
}

}  // namespace
}  // namespace sluice
