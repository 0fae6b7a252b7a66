// QueuePace: how often a request gets its first row while others wait, and so how long one that
// comes now will wait. Knows nothing, and says so, before it has seen a queue move kFewest times.
// Thread: engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace sluice {

class QueuePace {
 public:
  static constexpr std::uint32_t kFewest = 8;

  // A step begins at `now` with the first rows of so many requests; so many sequences wait on.
  void step(TimePoint now, std::size_t started, std::size_t waiting) noexcept;

  // Until the turn of one that has so many before it, at least.
  [[nodiscard]] std::optional<Duration> wait(std::size_t ahead) const noexcept;

 private:
  std::optional<TimePoint> since_;  // the last start with others waiting, or when they began to
  double interval_us_ = 0;
  std::uint32_t seen_ = 0;
};

}  // namespace sluice
