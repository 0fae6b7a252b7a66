#include "engine/slot_places.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <random>
#include <set>
#include <vector>

namespace sluice {
namespace {

TEST(SlotPlaces, ANewSlotTakesTheLowestFreePlaceAndKeepsIt) {
  SlotPlaces places(4, 1);
  EXPECT_EQ(places.place_of(Slot{3}), 0);
  EXPECT_EQ(places.place_of(Slot{1}), 1);
  EXPECT_EQ(places.place_of(Slot{3}), 0);
  EXPECT_EQ(places.release(Slot{3}), 0);
  EXPECT_EQ(places.place_of(Slot{0}), 0);
}

TEST(SlotPlaces, ASlotWithoutAPlaceIsNotFound) {
  SlotPlaces places(2, 1);
  EXPECT_EQ(places.find(Slot{1}), std::nullopt);
  EXPECT_EQ(places.release(Slot{1}), std::nullopt);
}

using Moves = std::vector<SlotPlaces::Move>;

std::vector<Slot> slots(std::initializer_list<std::int32_t> numbers) {
  std::vector<Slot> made;
  for (const std::int32_t number : numbers) made.push_back(Slot{number});
  return made;
}

TEST(SlotPlaces, TheHighestActiveMovesIntoTheLowestGap) {
  SlotPlaces places(4, 1);
  for (const std::int32_t slot : {0, 1, 2, 3}) (void)places.place_of(Slot{slot});
  places.release(Slot{1});
  EXPECT_EQ(places.close_gap(slots({0, 2, 3})), (Moves{{3, 1}}));
  EXPECT_EQ(places.find(Slot{3}), 1);
  EXPECT_EQ(places.close_gap(slots({0, 2, 3})), Moves{});
}

TEST(SlotPlaces, WhatLiesIdleInTheGapMovesOutOfTheWayFirst) {
  SlotPlaces places(4, 1);
  for (const std::int32_t slot : {0, 1, 2, 3}) (void)places.place_of(Slot{slot});
  EXPECT_EQ(places.close_gap(slots({0, 3})), (Moves{{1, 4}, {3, 1}}));
  EXPECT_EQ(places.find(Slot{1}), 4);
  EXPECT_EQ(places.find(Slot{3}), 1);
}

TEST(SlotPlaces, WithoutAGapNothingMoves) {
  SlotPlaces places(3, 1);
  EXPECT_EQ(places.close_gap({}), Moves{});
  for (const std::int32_t slot : {2, 0, 1}) (void)places.place_of(Slot{slot});
  EXPECT_EQ(places.close_gap(slots({0})), Moves{});
  EXPECT_EQ(places.close_gap(slots({0, 1})), Moves{}) << "what is idle may lie beside them";
}

TEST(SlotPlaces, NoTwoSlotsEverShareAPlaceAndMovesEndInNoGap) {
  constexpr std::int32_t kSlots = 9;
  SlotPlaces places(kSlots, 1);
  std::mt19937 random(1);
  for (int round = 0; round < 5000; ++round) {
    const Slot slot{static_cast<std::int32_t>(random() % kSlots)};
    if (random() % 2 == 0) {
      (void)places.place_of(slot);
    } else {
      places.release(slot);
    }
    std::vector<Slot> active;
    for (std::int32_t i = 0; i < kSlots; ++i) {
      if (places.find(Slot{i}) && random() % 2 == 0) active.push_back(Slot{i});
    }
    while (!places.close_gap(active).empty()) {
    }
    std::set<std::int32_t> used;
    std::size_t found = 0;
    for (std::int32_t i = 0; i < kSlots; ++i) {
      if (const auto place = places.find(Slot{i})) used.insert(*place), ++found;
    }
    ASSERT_EQ(used.size(), found);
    std::set<std::int32_t> at;
    for (const Slot one : active) at.insert(*places.find(one));
    const std::int32_t hull = at.empty() ? 0 : *at.rbegin() - *at.begin() + 1;
    ASSERT_EQ(hull, std::ssize(active));
  }
}

}  // namespace
}  // namespace sluice
