// StepCost: learns what decode rows and prefill rows cost here, and says how many prefill rows a
// step can take beside decode rows before it lasts longer than Limits::prefill_stretch times a step
// of the decode rows alone. What that step takes is measured, not guessed: where many rows came or
// went, or much time, one step goes without prefill. Thread: engine.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace sluice {

class StepCost {
 public:
  // `fewest`: a prefill beside decode rows gets this many rows, lest it never end.
  StepCost(double stretch, std::int32_t fewest) noexcept : stretch_(stretch), fewest_(fewest) {}

  void observe(std::int32_t decode_rows, std::int32_t prefill_rows, Duration took) noexcept;

  // Rows of prefill for a step with this many decode rows. None: as many as `most`.
  [[nodiscard]] std::int32_t prefill_rows(std::int32_t decode_rows,
                                          std::int32_t most) const noexcept;

 private:
  [[nodiscard]] bool knows_step_of(std::int32_t decode_rows) const noexcept;

  double stretch_;
  std::int32_t fewest_;
  double decode_step_us_ = 0;           // a step of decode rows alone,
  std::int32_t decode_step_rows_ = 0;   // so many of them,
  std::int32_t steps_since_alone_ = 0;  // measured so many steps ago
  double prefill_row_us_ = 0;
};

}  // namespace sluice
