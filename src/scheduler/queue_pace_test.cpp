#include "scheduler/queue_pace.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using std::chrono::milliseconds;

TEST(QueuePace, SaysNothingBeforeItHasSeenTheQueueMove) {
  QueuePace pace;
  TimePoint now{};
  for (std::uint32_t i = 0; i < QueuePace::kFewest; ++i) {
    pace.step(now += milliseconds(10), 1, 5);
    EXPECT_FALSE(pace.wait(1));
  }
  pace.step(now += milliseconds(10), 1, 5);
  EXPECT_TRUE(pace.wait(1));
}

TEST(QueuePace, TheWaitGrowsWithWhatIsAhead) {
  QueuePace pace;
  TimePoint now{};
  for (int i = 0; i < 20; ++i) pace.step(now += milliseconds(10), 1, 5);
  EXPECT_EQ(pace.wait(0), milliseconds(0));
  EXPECT_EQ(pace.wait(7), milliseconds(70));
}

TEST(QueuePace, SeveralThatStartAtOnceShareTheInterval) {
  QueuePace pace;
  TimePoint now{};
  for (int i = 0; i < 20; ++i) pace.step(now += milliseconds(10), 2, 5);
  EXPECT_EQ(pace.wait(2), milliseconds(10));
}

TEST(QueuePace, StepsWithoutAStartAreWaitedThrough) {
  QueuePace pace;
  TimePoint now{};
  for (int i = 0; i < 60; ++i) pace.step(now += milliseconds(10), i % 3 == 0 ? 1 : 0, 5);
  EXPECT_EQ(pace.wait(1), milliseconds(30));
}

TEST(QueuePace, TimeWithoutAQueueDoesNotCount) {
  QueuePace pace;
  TimePoint now{};
  for (int i = 0; i < 20; ++i) {
    pace.step(now += milliseconds(10), 0, 1);  // one begins to wait
    pace.step(now += milliseconds(10), 1, 0);  // and has its turn
    now += milliseconds(1000);
  }
  EXPECT_EQ(pace.wait(1), milliseconds(10));
}

}  // namespace
}  // namespace sluice
