#include "gateway/retry_budget.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

constexpr TimePoint kStart{std::chrono::hours{1}};

std::uint32_t take_all(RetryBudget& budget, TimePoint now) {
  std::uint32_t taken = 0;
  while (budget.take(now)) ++taken;
  return taken;
}

TEST(RetryBudget, AQuietGatewayMayRetryAFew) {
  RetryBudget budget(20);
  EXPECT_EQ(take_all(budget, kStart), RetryBudget::kAlways);
}

TEST(RetryBudget, IsAShareOfTheRequests) {
  RetryBudget budget(20);
  for (int i = 0; i < 1'000; ++i) budget.count_request(kStart);
  EXPECT_EQ(take_all(budget, kStart), 200U);
}

TEST(RetryBudget, ForgetsWhatIsOlderThanTenSeconds) {
  RetryBudget budget(20);
  for (int i = 0; i < 1'000; ++i) budget.count_request(kStart);
  EXPECT_EQ(take_all(budget, kStart), 200U);
  EXPECT_EQ(take_all(budget, kStart + std::chrono::seconds{9}), 0U);
  EXPECT_EQ(take_all(budget, kStart + std::chrono::seconds{10}), RetryBudget::kAlways);
}

}  // namespace
}  // namespace sluice
