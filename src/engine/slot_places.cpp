#include "engine/slot_places.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sluice {
namespace {

std::size_t index(Slot slot) { return static_cast<std::size_t>(slot); }
std::size_t index(std::int32_t place) { return static_cast<std::size_t>(place); }

}  // namespace

SlotPlaces::SlotPlaces(std::size_t slots, std::size_t spare)
    : place_of_slot_(slots, kNone), slot_in_place_(slots + spare, kNone) {
  CHECK(spare > 0, "a move needs a free place");
}

std::int32_t SlotPlaces::place_of(Slot slot) {
  CHECK(index(slot) < place_of_slot_.size(), "slots are below EngineInfo::slots");
  std::int32_t& place = place_of_slot_[index(slot)];
  if (place == kNone) {
    place = lowest_free();
    slot_in_place_[index(place)] = static_cast<std::int32_t>(slot);
  }
  return place;
}

std::optional<std::int32_t> SlotPlaces::find(Slot slot) const {
  const std::int32_t place = place_of_slot_[index(slot)];
  return place == kNone ? std::nullopt : std::optional(place);
}

std::optional<std::int32_t> SlotPlaces::release(Slot slot) {
  const std::optional<std::int32_t> place = find(slot);
  if (!place) return std::nullopt;
  place_of_slot_[index(slot)] = kNone;
  slot_in_place_[index(*place)] = kNone;
  return place;
}

std::vector<SlotPlaces::Move> SlotPlaces::close_gap(std::span<const Slot> active) {
  is_active_.assign(slot_in_place_.size(), false);
  for (const Slot slot : active) {
    CHECK(find(slot), "an active slot has its place");
    is_active_[index(place_of_slot_[index(slot)])] = true;
  }
  const auto first = std::find(is_active_.begin(), is_active_.end(), true);
  const auto gap = std::find(first, is_active_.end(), false);
  if (std::find(gap, is_active_.end(), true) == is_active_.end()) return {};
  const auto last = std::find(is_active_.rbegin(), is_active_.rend(), true);
  const auto from = static_cast<std::int32_t>(is_active_.rend() - last) - 1;
  const auto to = static_cast<std::int32_t>(gap - is_active_.begin());
  std::vector<Move> moves;
  if (slot_in_place_[index(to)] != kNone) moves.push_back(move(to, lowest_free()));
  moves.push_back(move(from, to));
  return moves;
}

SlotPlaces::Move SlotPlaces::move(std::int32_t from, std::int32_t to) {
  const std::int32_t slot = std::exchange(slot_in_place_[index(from)], kNone);
  slot_in_place_[index(to)] = slot;
  place_of_slot_[index(slot)] = to;
  return {from, to};
}

std::int32_t SlotPlaces::lowest_free() const {
  const auto free = std::find(slot_in_place_.begin(), slot_in_place_.end(), kNone);
  return free == slot_in_place_.end() ? kNone
                                      : static_cast<std::int32_t>(free - slot_in_place_.begin());
}

}  // namespace sluice
