#include "scheduler/step_cost.h"

#include <algorithm>
#include <chrono>

namespace sluice {
namespace {

// Follows a change within a few steps; one odd step moves it by a fifth.
void follow(double& average, double value) noexcept {
  average = average == 0 ? value : average + (value - average) / 5;
}

}  // namespace

void StepCost::observe(std::int32_t decode_rows, std::int32_t prefill_rows,
                       Duration took) noexcept {
  const double us = std::chrono::duration<double, std::micro>(took).count();
  if (prefill_rows == 0) {
    if (decode_rows > 0) follow(decode_step_us_, us);
    return;
  }
  const double decode_us = decode_rows > 0 ? decode_step_us_ : 0;
  follow(prefill_row_us_, std::max(us - decode_us, us / 10) / prefill_rows);
}

std::int32_t StepCost::prefill_rows(std::int32_t decode_rows, std::int32_t most) const noexcept {
  if (decode_rows == 0) return most;
  if (decode_step_us_ == 0 || prefill_row_us_ == 0) return std::min(fewest_, most);
  const double rows = (stretch_ - 1) * decode_step_us_ / prefill_row_us_;
  return static_cast<std::int32_t>(
      std::clamp(rows, static_cast<double>(std::min(fewest_, most)), static_cast<double>(most)));
}

}  // namespace sluice
