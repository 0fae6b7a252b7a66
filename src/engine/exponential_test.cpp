#include "engine/exponential.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice {
namespace {

TEST(Exponential, IsWithinThreeTenMillionthsOfTheExactValue) {
  double worst = 0;
  for (int i = 0; i <= 860'000; ++i) {
    const float x = -static_cast<float>(i) * 1e-4F;
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(exp_of_nonpositive(x) - exact) / exact);
  }
  EXPECT_LT(worst, 3e-7);
}

TEST(Exponential, OfZeroIsOneAndOfTheVeryNegativeIsZero) {
  EXPECT_EQ(exp_of_nonpositive(0.0F), 1.0F);
  EXPECT_EQ(exp_of_nonpositive(-200.0F), 0.0F);
  EXPECT_EQ(exp_of_nonpositive(-INFINITY), 0.0F);
}

}  // namespace
}  // namespace sluice
