#include "load/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace sluice {
namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

TEST(Arrivals, ConstantGapsAreAllAlike) {
  Arrivals arrivals(ArrivalProcess::kConstant, 1000, 1);
  for (int i = 0; i < 5000; ++i) EXPECT_NEAR(seconds(arrivals.next()), i / 1000.0, 1e-8);
}

TEST(Arrivals, PoissonKeepsItsRateAndItsGapsAreExponential) {
  constexpr int kCount = 100'000;
  Arrivals arrivals(ArrivalProcess::kPoisson, 200, 42);
  double before = 0;
  double squares = 0;
  int above_mean = 0;
  for (int i = 0; i < kCount; ++i) {
    const double now = seconds(arrivals.next());
    const double gap = now - before;
    ASSERT_GE(gap, 0);
    squares += gap * gap;
    above_mean += gap > 1 / 200.0;
    before = now;
  }
  EXPECT_NEAR(kCount / before, 200, 2);
  // an exponential's deviation is its mean, and e^-1 of it lies above
  EXPECT_NEAR(squares / kCount, 2 / (200.0 * 200.0), 2e-6);
  EXPECT_NEAR(above_mean / static_cast<double>(kCount), std::exp(-1), 0.01);
}

TEST(Arrivals, SeedDecidesThemAll) {
  Arrivals one(ArrivalProcess::kPoisson, 10, 5);
  Arrivals same(ArrivalProcess::kPoisson, 10, 5);
  Arrivals other(ArrivalProcess::kPoisson, 10, 6);
  int equal = 0;
  for (int i = 0; i < 100; ++i) {
    const Duration next = one.next();
    EXPECT_EQ(next, same.next());
    equal += next == other.next();
  }
  EXPECT_EQ(equal, 0);
}

}  // namespace
}  // namespace sluice
