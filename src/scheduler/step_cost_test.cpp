#include "scheduler/step_cost.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using std::chrono::milliseconds;

TEST(StepCost, WithoutDecodeRowsPrefillTakesAllItMay) {
  EXPECT_EQ(StepCost(2.0, 16).prefill_rows(0, 512), 512);
}

TEST(StepCost, WhatAStepAloneTakesIsMeasuredFirst) {
  StepCost cost(2.0, 16);
  EXPECT_EQ(cost.prefill_rows(10, 512), 0);
  cost.observe(10, 0, milliseconds(40));
  EXPECT_EQ(cost.prefill_rows(10, 512), 16) << "what a row of prefill takes is not known yet";
}

TEST(StepCost, PrefillFillsTheStretchAndNoMore) {
  StepCost cost(2.0, 16);
  cost.observe(10, 0, milliseconds(40));   // decode alone: 40 ms
  cost.observe(10, 40, milliseconds(80));  // 40 rows of prefill: 40 ms more
  EXPECT_EQ(cost.prefill_rows(10, 512), 40);
}

TEST(StepCost, APrefillAlwaysGetsItsFewestRows) {
  StepCost cost(1.01, 16);
  cost.observe(10, 0, milliseconds(40));
  cost.observe(10, 40, milliseconds(400));
  EXPECT_EQ(cost.prefill_rows(10, 512), 16);
  EXPECT_EQ(cost.prefill_rows(10, 8), 8);
}

TEST(StepCost, ManyMoreOrFewerDecodeRowsAreMeasuredAnew) {
  StepCost cost(2.0, 16);
  cost.observe(1, 0, milliseconds(10));
  cost.observe(1, 40, milliseconds(50));
  EXPECT_EQ(cost.prefill_rows(2, 512), 16) << "one row more is no other step";
  EXPECT_EQ(cost.prefill_rows(32, 512), 0);
  cost.observe(32, 0, milliseconds(100));
  EXPECT_EQ(cost.prefill_rows(32, 512), 100);
  EXPECT_EQ(cost.prefill_rows(28, 512), 100);
  EXPECT_EQ(cost.prefill_rows(16, 512), 0);
}

TEST(StepCost, WhatWasMeasuredLongAgoIsMeasuredAnew) {
  StepCost cost(2.0, 16);
  cost.observe(10, 0, milliseconds(40));
  int steps = 0;
  while (cost.prefill_rows(10, 512) > 0 && steps < 1000) {
    cost.observe(10, 40, milliseconds(80));
    ++steps;
  }
  EXPECT_EQ(steps, 64);
  cost.observe(10, 0, milliseconds(40));
  EXPECT_EQ(cost.prefill_rows(10, 512), 40);
}

TEST(StepCost, FollowsAMachineThatGetsSlower) {
  StepCost cost(2.0, 1);
  cost.observe(10, 0, milliseconds(40));
  for (int i = 0; i < 50; ++i) cost.observe(0, 100, milliseconds(100));
  EXPECT_NEAR(cost.prefill_rows(10, 512), 40, 1);
  for (int i = 0; i < 50; ++i) cost.observe(0, 100, milliseconds(400));
  EXPECT_NEAR(cost.prefill_rows(10, 512), 10, 1);
}

}  // namespace
}  // namespace sluice
