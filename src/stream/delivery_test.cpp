#include "stream/delivery.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace sluice {
namespace {

TEST(Delivery, WakesEveryPostedWire) {
  std::latch woken(3);
  Delivery delivery;
  std::vector<std::shared_ptr<WireQueue>> wires;
  for (int i = 0; i < 3; ++i)
    wires.push_back(std::make_shared<WireQueue>([&woken] { woken.count_down(); }));
  delivery.post(wires);
  EXPECT_TRUE(wires.empty());
  woken.wait();
}

TEST(Delivery, WakesWhatWasPostedBeforeItsEnd) {
  std::atomic<int> woken = 0;
  {
    Delivery delivery;
    std::vector<std::shared_ptr<WireQueue>> wires{
        std::make_shared<WireQueue>([&woken] { ++woken; })};
    delivery.post(wires);
  }
  EXPECT_EQ(woken, 1);
}

TEST(WireQueue, IsGivenToDeliveryOnceUntilItsWake) {
  WireQueue wire([] {});
  EXPECT_TRUE(wire.mark(1));
  EXPECT_FALSE(wire.mark(2));
  wire.wake();
  EXPECT_TRUE(wire.mark(3));
  std::vector<WireId> marked;
  wire.take(marked);
  EXPECT_EQ(marked, (std::vector<WireId>{1, 2, 3}));
}

TEST(WireQueue, AMarkDuringTheWakeBringsAnotherOne) {
  bool marked_again = false;
  WireQueue* self = nullptr;
  WireQueue wire([&] { marked_again = self->mark(2); });
  self = &wire;
  EXPECT_TRUE(wire.mark(1));
  wire.wake();
  EXPECT_TRUE(marked_again);
}

}  // namespace
}  // namespace sluice
