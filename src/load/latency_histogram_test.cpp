#include "load/latency_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "load/load_random.h"

namespace sluice {
namespace {

using std::chrono::microseconds;

// What a percentile is, of all values kept and sorted.
double naive(std::vector<std::uint64_t> values, double percent) {
  std::sort(values.begin(), values.end());
  const auto wanted = static_cast<std::size_t>(
      std::max(1.0, std::ceil(percent / 100 * static_cast<double>(values.size()) * (1 - 1e-12))));
  return static_cast<double>(values[wanted - 1]);
}

constexpr double kPercents[] = {0, 1, 25, 50, 90, 95, 99, 99.9, 100};

TEST(LatencyHistogram, PercentilesAreThoseOfAllValuesSorted) {
  for (const unsigned bits : {4U, 7U, 10U}) {
    LatencyHistogram histogram(bits);
    std::vector<std::uint64_t> values;
    LoadRandom random(7);
    for (int i = 0; i < 20'000; ++i) {
      const auto value = static_cast<std::uint64_t>(std::exp(random.uniform() * 20));
      values.push_back(value);
      histogram.record(microseconds(value));
    }
    for (const double percent : kPercents) {
      const double exact = naive(values, percent);
      EXPECT_GE(histogram.percentile_us(percent), exact) << bits << " bits, p" << percent;
      EXPECT_LE(histogram.percentile_us(percent), exact * (1 + std::pow(0.5, bits)))
          << bits << " bits, p" << percent;
    }
  }
}

TEST(LatencyHistogram, SmallCountsAreExact) {
  LatencyHistogram histogram;
  for (const int value : {10, 20, 30, 40}) histogram.record(microseconds(value));
  EXPECT_EQ(histogram.percentile_us(25), 10);
  EXPECT_EQ(histogram.percentile_us(26), 20);
  EXPECT_EQ(histogram.percentile_us(50), 20);
  EXPECT_EQ(histogram.percentile_us(100), 40);
  EXPECT_EQ(histogram.mean_us(), 25);
  EXPECT_EQ(histogram.count_up_to(29), 2U);
  EXPECT_EQ(histogram.count_up_to(30), 3U);
}

TEST(LatencyHistogram, OneOfAThousandIsP999AndNotP99) {
  LatencyHistogram histogram;
  for (int i = 0; i < 998; ++i) histogram.record(microseconds(100));
  for (int i = 0; i < 2; ++i) histogram.record(microseconds(900));
  EXPECT_EQ(histogram.percentile_us(99), 100);
  EXPECT_EQ(histogram.percentile_us(99.9), 900);
}

TEST(LatencyHistogram, SumOfPartsIsTheWhole) {
  LatencyHistogram whole;
  LatencyHistogram sum;
  LatencyHistogram coarse(4);
  LoadRandom random(3);
  for (int part = 0; part < 4; ++part) {
    LatencyHistogram one;
    for (int i = 0; i < 1000; ++i) {
      const microseconds value(random.below(1'000'000));
      whole.record(value);
      one.record(value);
    }
    sum.add(one);
    coarse.add(one);
  }
  for (const double percent : kPercents) {
    EXPECT_EQ(sum.percentile_us(percent), whole.percentile_us(percent));
    EXPECT_NEAR(coarse.percentile_us(percent), whole.percentile_us(percent),
                whole.percentile_us(percent) / 15 + 1);
  }
  EXPECT_EQ(sum.mean_us(), whole.mean_us());
  EXPECT_EQ(coarse.max_us(), whole.max_us());
}

TEST(LatencyHistogram, NothingAndTheExtremesHaveTheirPlace) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.percentile_us(99), 0);
  histogram.record(microseconds(-5));
  histogram.record(std::chrono::hours(1000));
  EXPECT_EQ(histogram.percentile_us(0), 0);
  EXPECT_EQ(histogram.percentile_us(100), LatencyHistogram::kMostMicroseconds);
  histogram.clear();
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.max_us(), 0U);
}

}  // namespace
}  // namespace sluice
