#include "engine/slot_places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace sluice {
namespace {

TEST(SlotPlaces, ANewSlotTakesTheLowestFreePlaceAndKeepsIt) {
  SlotPlaces places(4);
  EXPECT_EQ(places.place_of(Slot{3}), 0);
  EXPECT_EQ(places.place_of(Slot{1}), 1);
  EXPECT_EQ(places.place_of(Slot{3}), 0);
  EXPECT_EQ(places.release(Slot{3}), 0);
  EXPECT_EQ(places.place_of(Slot{0}), 0);
}

TEST(SlotPlaces, ASlotWithoutAPlaceIsNotFound) {
  SlotPlaces places(2);
  EXPECT_EQ(places.find(Slot{1}), std::nullopt);
  EXPECT_EQ(places.release(Slot{1}), std::nullopt);
}

TEST(SlotPlaces, TheHighestMovesIntoTheLowestGap) {
  SlotPlaces places(4);
  for (const std::int32_t slot : {0, 1, 2, 3}) (void)places.place_of(Slot{slot});
  places.release(Slot{1});
  const std::optional<SlotPlaces::Move> move = places.close_gap();
  ASSERT_TRUE(move);
  EXPECT_EQ(move->from, 3);
  EXPECT_EQ(move->to, 1);
  EXPECT_EQ(places.find(Slot{3}), 1);
  EXPECT_FALSE(places.close_gap());
}

TEST(SlotPlaces, WithoutAGapNothingMoves) {
  SlotPlaces places(3);
  EXPECT_FALSE(places.close_gap());
  (void)places.place_of(Slot{2});
  (void)places.place_of(Slot{0});
  EXPECT_FALSE(places.close_gap());
  (void)places.place_of(Slot{1});
  EXPECT_FALSE(places.close_gap());
}

TEST(SlotPlaces, NoTwoSlotsEverShareAPlaceAndMovesEndInNoGap) {
  constexpr std::int32_t kSlots = 9;
  SlotPlaces places(kSlots);
  std::mt19937 random(1);
  for (int round = 0; round < 5000; ++round) {
    const Slot slot{static_cast<std::int32_t>(random() % kSlots)};
    if (random() % 2 == 0) {
      (void)places.place_of(slot);
    } else {
      places.release(slot);
    }
    while (random() % 3 == 0 && places.close_gap()) {
    }
    std::set<std::int32_t> used;
    std::size_t found = 0;
    for (std::int32_t i = 0; i < kSlots; ++i) {
      if (const auto place = places.find(Slot{i})) used.insert(*place), ++found;
    }
    ASSERT_EQ(used.size(), found);
  }
  while (places.close_gap()) {
  }
  std::int32_t used = 0;
  std::int32_t highest = -1;
  for (std::int32_t i = 0; i < kSlots; ++i) {
    if (const auto place = places.find(Slot{i})) ++used, highest = std::max(highest, *place);
  }
  EXPECT_EQ(highest + 1, used);
}

}  // namespace
}  // namespace sluice
