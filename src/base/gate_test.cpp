#include "base/gate.h"

#include <gtest/gtest.h>

#include <thread>

namespace sluice {
namespace {

TEST(Gate, CountsPassesUntilTheyGo) {
  Gate gate;
  {
    const auto first = gate.enter();
    auto second = gate.enter();
    EXPECT_EQ(gate.count(), 2U);
    const Gate::Pass moved = std::move(*second);
    EXPECT_EQ(gate.count(), 2U);
  }
  EXPECT_EQ(gate.count(), 0U);
}

TEST(Gate, RefusesWhenClosed) {
  Gate gate;
  const auto before = gate.enter();
  gate.close();
  EXPECT_FALSE(gate.enter());
  EXPECT_EQ(gate.count(), 1U);
}

TEST(Gate, WaitingEndsWithTheLastPass) {
  SystemClock clock;
  Gate gate;
  auto pass = gate.enter();
  gate.close();
  std::thread leaver([moved = std::move(pass)]() mutable { moved.reset(); });
  EXPECT_TRUE(gate.wait_empty(clock, kForever));
  leaver.join();
}

TEST(Gate, WaitingEndsWhenItsTimeHasCome) {
  ManualClock clock;
  Gate gate;
  const auto pass = gate.enter();
  EXPECT_FALSE(gate.wait_empty(clock, clock.now()));
}

}  // namespace
}  // namespace sluice
