#include "gateway/rate_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace sluice {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using testing::HasSubstr;

ApiKey key_with(KeyLimits limits, std::string name = "alice") {
  return {.name = std::move(name), .hash = {}, .limits = std::move(limits)};
}

class RateLimitsTest : public testing::Test {
 protected:
  // Reserves and settles with what was reserved.
  void spend(const ApiKey& key, std::uint64_t tokens) {
    auto reservation = limits_.reserve(key, tokens);
    ASSERT_TRUE(reservation) << reservation.error().message;
    reservation->settle(tokens);
  }

  void expect_refused(const ApiKey& key, std::uint64_t tokens, const std::string& limit,
                      std::optional<std::chrono::milliseconds> retry_after) {
    const auto refused = limits_.reserve(key, tokens);
    ASSERT_FALSE(refused) << limit;
    EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
    EXPECT_THAT(refused.error().message, HasSubstr(limit));
    EXPECT_THAT(refused.error().message, HasSubstr(key.name));
    EXPECT_EQ(refused.error().retry_after, retry_after);
  }

  ManualClock clock_;
  RateLimits limits_{clock_};
};

TEST_F(RateLimitsTest, AMinutesRequestsMayComeAtOnceAndComeBackOneByOne) {
  const ApiKey key = key_with({.requests_per_minute = 3});
  for (int i = 0; i < 3; ++i) spend(key, 1'000'000);
  expect_refused(key, 0, "rpm", 20s);
  clock_.advance(19'999ms);
  expect_refused(key, 0, "rpm", 1ms);
  clock_.advance(1ms);
  spend(key, 0);
  expect_refused(key, 0, "rpm", 20s);
}

TEST_F(RateLimitsTest, NoMoreThanAMinutesWorthIsSaved) {
  const ApiKey key = key_with({.requests_per_minute = 2});
  spend(key, 0);
  clock_.advance(std::chrono::hours{24});
  spend(key, 0);
  spend(key, 0);
  expect_refused(key, 0, "rpm", 30s);
}

TEST_F(RateLimitsTest, TokensAreReservedBeforeTheWorkAndSettledAfterIt) {
  const ApiKey key = key_with({.tokens_per_minute = 600});
  auto first = limits_.reserve(key, 400);
  ASSERT_TRUE(first);
  expect_refused(key, 300, "tpm", 10s);
  first->settle(100);
  EXPECT_EQ(limits_.figures(key).tokens->remaining, 500U);
}

TEST_F(RateLimitsTest, WhatWasNotSettledComesBackWhole) {
  const ApiKey key = key_with({.requests_per_minute = 1, .tokens_per_minute = 600, .streams = 1});
  { ASSERT_TRUE(limits_.reserve(key, 600)); }
  spend(key, 600);
}

TEST_F(RateLimitsTest, TokensAboveTheReservationAreOwed) {
  const ApiKey key = key_with({.tokens_per_minute = 600});
  auto reservation = limits_.reserve(key, 100);
  ASSERT_TRUE(reservation);
  reservation->settle(900);
  EXPECT_EQ(limits_.figures(key).tokens->remaining, 0U);
  EXPECT_EQ(limits_.figures(key).tokens->reset, 90s);
  expect_refused(key, 1, "tpm", 30'100ms);
}

TEST_F(RateLimitsTest, MoreThanAMinuteHoldsIsRefusedWithoutATime) {
  const ApiKey key = key_with({.requests_per_minute = 1, .tokens_per_minute = 600});
  expect_refused(key, 601, "tpm", std::nullopt);
  spend(key, 600);
}

TEST_F(RateLimitsTest, RequestsAtOnceAreBoundedUntilOneEnds) {
  const ApiKey key = key_with({.streams = 2});
  auto first = limits_.reserve(key, 1);
  std::optional second = limits_.reserve(key, 1);
  ASSERT_TRUE(first && *second);
  expect_refused(key, 1, "streams", 1s);
  first->settle(1);
  auto third = limits_.reserve(key, 1);
  EXPECT_TRUE(third);
  expect_refused(key, 1, "streams", 1s);
  second.reset();
  EXPECT_TRUE(limits_.reserve(key, 1));
}

TEST_F(RateLimitsTest, ARequestThatOneLimitRefusesTakesNothingOfTheOthers) {
  const ApiKey key = key_with({.requests_per_minute = 60, .tokens_per_minute = 600, .streams = 1});
  auto running = limits_.reserve(key, 500);
  ASSERT_TRUE(running);
  for (int i = 0; i < 10; ++i) expect_refused(key, 1, "streams", 1s);
  EXPECT_EQ(limits_.figures(key).requests->remaining, 59U);
  EXPECT_EQ(limits_.figures(key).tokens->remaining, 100U);
  running->settle(500);
  for (int i = 0; i < 10; ++i) expect_refused(key, 200, "tpm", 10s);
  EXPECT_EQ(limits_.figures(key).requests->remaining, 59U);
  spend(key, 100);
}

TEST_F(RateLimitsTest, KeysDoNotShareAndWithoutLimitsHaveNoEntry) {
  spend(key_with({.requests_per_minute = 1}, "alice"), 1);
  spend(key_with({.requests_per_minute = 1}, "bob"), 1);
  const ApiKey free = key_with({.trusted = true}, "carol");
  for (int i = 0; i < 100; ++i) spend(free, 1'000'000'000);
  EXPECT_FALSE(limits_.figures(free).requests || limits_.figures(free).tokens);
  EXPECT_EQ(limits_.entries(), 2U);
}

TEST_F(RateLimitsTest, ChangedLimitsHoldAtOnceAndForgiveNothing) {
  spend(key_with({.tokens_per_minute = 600}), 500);
  EXPECT_EQ(limits_.figures(key_with({.tokens_per_minute = 60'000})).tokens->remaining, 100U);
  EXPECT_EQ(limits_.figures(key_with({.tokens_per_minute = 60})).tokens->remaining, 60U);
  EXPECT_FALSE(limits_.figures(key_with({.requests_per_minute = 1})).tokens);
}

TEST_F(RateLimitsTest, EntriesAreBoundedByTheKeysOfTheLastMinute) {
  const ApiKey busy = key_with({.streams = 1}, "busy");
  const auto running = limits_.reserve(busy, 1);
  for (int i = 0; i < 10'000; ++i) {
    spend(key_with({.requests_per_minute = 60}, "key" + std::to_string(i)), 1);
    clock_.advance(100ms);
  }
  EXPECT_LT(limits_.entries(), 100U);
  expect_refused(busy, 1, "streams", 1s);
}

TEST_F(RateLimitsTest, TheLimitIsExactForManyThreads) {
  const ApiKey key = key_with({.tokens_per_minute = 100'000});
  std::atomic<std::uint64_t> granted = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 5'000; ++n) {
        auto reservation = limits_.reserve(key, 50);
        if (!reservation) continue;
        const std::uint64_t used = n % 3 == 0 ? 50U : static_cast<std::uint64_t>(i);
        if (n % 5 == 0) continue;  // dropped
        reservation->settle(used);
        granted += used;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(granted, 100'000U);
  EXPECT_EQ(limits_.figures(key).tokens->remaining, 100'000U - granted);
}

TEST_F(RateLimitsTest, OnlyAsManyReservationsAreGrantedAsThereAre) {
  const ApiKey key = key_with({.requests_per_minute = 1'000, .streams = 1'000'000});
  std::atomic<int> granted = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 500; ++n) {
        if (auto reservation = limits_.reserve(key, 50)) {
          ++granted;
          reservation->settle(50);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(granted, 1'000);
}

TEST(RateHeaders, DurationsAreWrittenAsOpenAisAre) {
  const std::vector<std::pair<std::chrono::milliseconds, std::string>> table{
      {0ms, "0s"},
      {-5ms, "0s"},
      {1ms, "1ms"},
      {20ms, "20ms"},
      {999ms, "999ms"},
      {1'000ms, "1s"},
      {1'200ms, "1.2s"},
      {1'050ms, "1.05s"},
      {59'999ms, "59.999s"},
      {60'000ms, "1m0s"},
      {360'000ms, "6m0s"},
      {61'500ms, "1m1.5s"},
      {3'600'000ms, "1h0m0s"},
      {90'061'001ms, "25h1m1.001s"},
  };
  for (const auto& [duration, text] : table) EXPECT_EQ(duration_text(duration), text);
}

TEST(RateHeaders, SayLimitRemainingAndReset) {
  HttpHeaders headers;
  add_headers({.requests = RateFigure{60, 59, 1'000ms}, .tokens = std::nullopt}, headers);
  EXPECT_EQ(headers.value("x-ratelimit-limit-requests"), "60");
  EXPECT_EQ(headers.value("x-ratelimit-remaining-requests"), "59");
  EXPECT_EQ(headers.value("x-ratelimit-reset-requests"), "1s");
  EXPECT_EQ(headers.fields().size(), 3U);
}

}  // namespace
}  // namespace sluice
