// Timeline: how a run went over time, in intervals with a histogram each.
// Bounded by kMost intervals: when they are used up, each two become one. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "load/latency_histogram.h"

namespace sluice {

struct TimelineInterval {
  Duration begin{};  // from the run's start
  Duration end{};
  LatencyHistogram ttft{5};
  LatencyHistogram itl{5};
  std::uint64_t tokens = 0;
  std::uint64_t ended = 0;
  std::uint64_t failed = 0;
  std::size_t running = 0;  // at its end; of joined ones the most

  void add(const TimelineInterval& other) noexcept;
  void clear() noexcept;
  [[nodiscard]] double seconds() const noexcept;
};

class Timeline {
 public:
  static constexpr std::size_t kMost = 256;

  explicit Timeline(TimePoint start) noexcept : start_(start) {}

  // What came since the last interval's end, which `interval` need not know.
  void close_interval(TimePoint now, TimelineInterval interval);
  [[nodiscard]] const std::vector<TimelineInterval>& intervals() const noexcept {
    return intervals_;
  }
  // What closed last, not joined with others. Nothing came yet: empty.
  [[nodiscard]] const TimelineInterval& last() const noexcept { return last_; }

 private:
  const TimePoint start_;
  Duration closed_{};
  std::size_t joined_ = 1;   // intervals that make one
  std::size_t in_last_ = 0;  // that the last of them has
  std::vector<TimelineInterval> intervals_;
  TimelineInterval last_;
};

}  // namespace sluice
