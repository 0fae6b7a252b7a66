#include "engine/slot_places.h"

#include <algorithm>

#include "base/check.h"

namespace sluice {
namespace {

std::size_t index(Slot slot) { return static_cast<std::size_t>(slot); }
std::size_t index(std::int32_t place) { return static_cast<std::size_t>(place); }

}  // namespace

SlotPlaces::SlotPlaces(std::size_t slots)
    : place_of_slot_(slots, kNone), slot_in_place_(slots, kNone) {}

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

std::optional<SlotPlaces::Move> SlotPlaces::close_gap() {
  const auto highest = std::find_if(slot_in_place_.rbegin(), slot_in_place_.rend(),
                                    [](std::int32_t slot) { return slot != kNone; });
  if (highest == slot_in_place_.rend()) return std::nullopt;
  const auto from = static_cast<std::int32_t>(slot_in_place_.rend() - highest) - 1;
  const std::int32_t to = lowest_free();
  if (to == kNone || to > from) return std::nullopt;
  slot_in_place_[index(to)] = *highest;
  place_of_slot_[index(*highest)] = to;
  *highest = kNone;
  return Move{from, to};
}

std::int32_t SlotPlaces::lowest_free() const {
  const auto free = std::find(slot_in_place_.begin(), slot_in_place_.end(), kNone);
  return free == slot_in_place_.end() ? kNone
                                      : static_cast<std::int32_t>(free - slot_in_place_.begin());
}

}  // namespace sluice
