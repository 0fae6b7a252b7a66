#include "scheduler/step_cost.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace sluice {
namespace {

// A step of so many more or fewer rows, in quarters, is another step; and any measured so long ago.
constexpr std::int32_t kAlikeQuarters = 5;
constexpr std::int32_t kStepsUntilStale = 64;

// Follows a change within a few steps; one odd step moves it by a fifth.
void follow(double& average, double value) noexcept {
  average = average == 0 ? value : average + (value - average) / 5;
}

bool alike(std::int32_t a, std::int32_t b) noexcept {
  return 4 * std::max(a, b) <= kAlikeQuarters * std::min(a, b) || std::abs(a - b) <= 1;
}

}  // namespace

void StepCost::observe(std::int32_t decode_rows, std::int32_t prefill_rows,
                       Duration took) noexcept {
  const double us = std::chrono::duration<double, std::micro>(took).count();
  if (prefill_rows == 0) {
    if (decode_rows == 0) return;
    if (!alike(decode_rows, decode_step_rows_)) decode_step_us_ = 0;
    follow(decode_step_us_, us);
    decode_step_rows_ = decode_rows;
    steps_since_alone_ = 0;
    return;
  }
  if (decode_rows > 0) ++steps_since_alone_;
  const double decode_us = decode_rows > 0 ? decode_step_us_ : 0;
  follow(prefill_row_us_, std::max(us - decode_us, us / 10) / prefill_rows);
}

bool StepCost::knows_step_of(std::int32_t decode_rows) const noexcept {
  return decode_step_us_ > 0 && alike(decode_rows, decode_step_rows_) &&
         steps_since_alone_ < kStepsUntilStale;
}

std::int32_t StepCost::prefill_rows(std::int32_t decode_rows, std::int32_t most) const noexcept {
  if (decode_rows == 0) return most;
  if (!knows_step_of(decode_rows)) return 0;
  if (prefill_row_us_ == 0) return std::min(fewest_, most);
  const double rows = (stretch_ - 1) * decode_step_us_ / prefill_row_us_;
  return static_cast<std::int32_t>(
      std::clamp(rows, static_cast<double>(std::min(fewest_, most)), static_cast<double>(most)));
}

}  // namespace sluice
