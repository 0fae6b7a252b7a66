// SlotPlaces: which of the KV's places holds each slot. The slots of a step are brought next to
// each other: a new slot takes the lowest free place, and what lies between those of a step can be
// moved out of the way. Why: libllama computes a batch in as many passes over the weights as its
// sequences have gaps. Bounded by the slots; at least one place more than these is always free.
// Thread: engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/batch.h"

namespace sluice {

class SlotPlaces {
 public:
  SlotPlaces(std::size_t slots, std::size_t spare);  // spare ≥ 1

  // The slot's place; the lowest free one from now on if it had none.
  [[nodiscard]] std::int32_t place_of(Slot slot);
  [[nodiscard]] std::optional<std::int32_t> find(Slot slot) const;

  // The place that is free again.
  std::optional<std::int32_t> release(Slot slot);

  // What must be moved, in this order, for there to be a gap less between the places of `active`,
  // which all have one: what is in the gap, if anything, to a free place, then the active slot in
  // the highest place into the gap. The slots' places are the new ones from now on.
  struct Move {
    std::int32_t from = 0;
    std::int32_t to = 0;

    friend bool operator==(const Move&, const Move&) = default;
  };
  [[nodiscard]] std::vector<Move> close_gap(std::span<const Slot> active);

 private:
  static constexpr std::int32_t kNone = -1;

  [[nodiscard]] std::int32_t lowest_free() const;
  Move move(std::int32_t from, std::int32_t to);

  std::vector<std::int32_t> place_of_slot_;
  std::vector<std::int32_t> slot_in_place_;
  std::vector<bool> is_active_;  // by place, within close_gap
};

}  // namespace sluice
