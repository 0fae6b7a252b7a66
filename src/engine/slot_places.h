// SlotPlaces: which of the KV's places holds each slot. Places in use are kept next to each other:
// a new slot takes the lowest free one, and a gap that an ended sequence left can be closed by a
// move. Why: libllama computes a batch in as many passes over the weights as its sequences have
// gaps. Bounded by the slots. Thread: engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/batch.h"

namespace sluice {

class SlotPlaces {
 public:
  explicit SlotPlaces(std::size_t slots);

  // The slot's place; the lowest free one from now on if it had none.
  [[nodiscard]] std::int32_t place_of(Slot slot);
  [[nodiscard]] std::optional<std::int32_t> find(Slot slot) const;

  // The place that is free again.
  std::optional<std::int32_t> release(Slot slot);

  // What must be moved for there to be one gap less: the sequence in the highest place, to the
  // lowest free one. The slot's place is the new one from now on.
  struct Move {
    std::int32_t from = 0;
    std::int32_t to = 0;
  };
  [[nodiscard]] std::optional<Move> close_gap();

 private:
  static constexpr std::int32_t kNone = -1;

  [[nodiscard]] std::int32_t lowest_free() const;

  std::vector<std::int32_t> place_of_slot_;
  std::vector<std::int32_t> slot_in_place_;
};

}  // namespace sluice
