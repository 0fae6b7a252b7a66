#include "load/length_distribution.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice {
namespace {

struct Shape {
  double mean;
  double deviation;
  std::uint32_t least;
  std::uint32_t most;
};

Shape shape_of(const char* text) {
  const auto lengths = LengthDistribution::parse(text, "--prompt-tokens");
  EXPECT_TRUE(lengths) << text;
  LoadRandom random(11);
  double sum = 0;
  double squares = 0;
  Shape shape{0, 0, UINT32_MAX, 0};
  constexpr int kCount = 50'000;
  for (int i = 0; i < kCount; ++i) {
    const std::uint32_t length = lengths->draw(random);
    sum += length;
    squares += static_cast<double>(length) * length;
    shape.least = std::min(shape.least, length);
    shape.most = std::max(shape.most, length);
  }
  shape.mean = sum / kCount;
  shape.deviation = std::sqrt(squares / kCount - shape.mean * shape.mean);
  return shape;
}

TEST(LengthDistribution, MeanAndDeviationAreThoseAskedFor) {
  for (const char* text : {"17", "fixed:17"}) {
    const Shape fixed = shape_of(text);
    EXPECT_EQ(fixed.least, 17U);
    EXPECT_EQ(fixed.most, 17U);
  }
  const Shape uniform = shape_of("uniform:10-19");
  EXPECT_EQ(uniform.least, 10U);
  EXPECT_EQ(uniform.most, 19U);
  EXPECT_NEAR(uniform.mean, 14.5, 0.1);
  const Shape normal = shape_of("normal:200,20");
  EXPECT_NEAR(normal.mean, 200, 1);
  EXPECT_NEAR(normal.deviation, 20, 0.5);
  const Shape lognormal = shape_of("lognormal:200,100");
  EXPECT_NEAR(lognormal.mean, 200, 3);
  EXPECT_NEAR(lognormal.deviation, 100, 5);
  EXPECT_GT(lognormal.most, 600U) << "it has a long tail";
}

TEST(LengthDistribution, NothingIsShorterThanOne) { EXPECT_EQ(shape_of("normal:2,50").least, 1U); }

TEST(LengthDistribution, WhatItIsNotIsRefusedByItsFlag) {
  for (const char* text : {"", "0", "-3", "x", "uniform:5", "uniform:9-5", "uniform:0-5",
                           "normal:5", "normal:x,1", "zipf:3", "12,5", "inf", "nan", "99999999"}) {
    const auto lengths = LengthDistribution::parse(text, "--output-tokens");
    ASSERT_FALSE(lengths) << text;
    EXPECT_NE(lengths.error().message.find("--output-tokens"), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice
