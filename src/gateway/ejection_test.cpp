#include "gateway/ejection.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using std::chrono_literals::operator""ms;

constexpr TimePoint kStart{std::chrono::hours{1}};

Ejection ejected_at(TimePoint now) {
  Ejection ejection(2'000ms);
  for (std::uint32_t i = 1; i < Ejection::kFailuresToEject; ++i) EXPECT_FALSE(ejection.failed(now));
  EXPECT_TRUE(ejection.failed(now));
  return ejection;
}

TEST(Ejection, SomeFailuresOnEndEject) {
  const Ejection ejection = ejected_at(kStart);
  EXPECT_EQ(ejection.standing(kStart), Standing::kEjected);
  EXPECT_EQ(ejection.standing(kStart + 1'999ms), Standing::kEjected);
  EXPECT_EQ(ejection.standing(kStart + 2'000ms), Standing::kHalfOpen);
}

TEST(Ejection, ASuccessBetweenFailuresBeginsTheCountAnew) {
  Ejection ejection(2'000ms);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(ejection.failed(kStart));
    ejection.succeeded();
  }
  EXPECT_EQ(ejection.standing(kStart), Standing::kGood);
}

TEST(Ejection, WhatWasSentBeforeDoesNotProlongIt) {
  Ejection ejection = ejected_at(kStart);
  EXPECT_FALSE(ejection.failed(kStart + 1'000ms));
  EXPECT_EQ(ejection.standing(kStart + 2'000ms), Standing::kHalfOpen);
}

TEST(Ejection, HalfOpenLetsOneThroughAtATime) {
  Ejection ejection = ejected_at(kStart);
  const TimePoint then = kStart + 2'000ms;
  ejection.tried(then);
  EXPECT_EQ(ejection.standing(then), Standing::kEjected);
  EXPECT_EQ(ejection.standing(then + 2'000ms), Standing::kHalfOpen);  // that one never ended
  ejection.succeeded();
  EXPECT_EQ(ejection.standing(then), Standing::kGood);
}

TEST(Ejection, ATryThatFailsDoublesTheTimeUpToTheMost) {
  Ejection ejection = ejected_at(kStart);
  TimePoint now = kStart;
  for (const auto time : {4'000ms, 8'000ms, 16'000ms, 30'000ms, 30'000ms}) {
    now += 60'000ms;
    ASSERT_EQ(ejection.standing(now), Standing::kHalfOpen);
    ejection.tried(now);
    EXPECT_TRUE(ejection.failed(now));
    EXPECT_EQ(ejection.standing(now + time - 1ms), Standing::kEjected);
    EXPECT_EQ(ejection.standing(now + time), Standing::kHalfOpen);
  }
  ejection.succeeded();
  for (std::uint32_t i = 0; i < Ejection::kFailuresToEject; ++i)
    static_cast<void>(ejection.failed(now));
  EXPECT_EQ(ejection.standing(now + 2'000ms), Standing::kHalfOpen);  // as at first
}

}  // namespace
}  // namespace sluice
