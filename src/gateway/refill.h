// Refill: a quantity that is used up and comes back at an even pace, a minute for all of it.
// Counted in whole microseconds of refilling, so that nothing is lost or gained by rounding: a unit
// costs 60,000,000 and each microsecond adds the limit. May go below zero (debt), which refills
// first. Thread: whoever holds its owner's lock.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace sluice {

class Refill {
 public:
  // Full. `limit`: units a minute, at least 1, at most a thousand million.
  Refill(std::uint32_t limit, TimePoint now) noexcept;

  // Another limit; what is there stays, as far as it fits.
  void set_limit(std::uint32_t limit, TimePoint now) noexcept;
  [[nodiscard]] std::uint32_t limit() const noexcept { return limit_; }

  // How long until `units` are there: zero if they are. Only for units up to the limit.
  [[nodiscard]] std::chrono::microseconds wait_for(std::uint64_t units, TimePoint now) noexcept;

  void take(std::uint64_t units) noexcept;
  void give_back(std::uint64_t units) noexcept;

  // Whole units that are there.
  [[nodiscard]] std::uint32_t remaining(TimePoint now) noexcept;
  [[nodiscard]] std::chrono::microseconds wait_for_all(TimePoint now) noexcept {
    return wait_for(limit_, now);
  }

 private:
  void refill(TimePoint now) noexcept;
  [[nodiscard]] std::int64_t full() const noexcept;

  std::uint32_t limit_;
  std::int64_t level_;
  TimePoint refilled_at_;
};

}  // namespace sluice
