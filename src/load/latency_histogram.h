// LatencyHistogram: durations counted in buckets whose width is a fixed share of their value, as
// Gil Tene's HDR histogram has them: `bits` of 10 is an error of at most 0.1 %, of 4 at most 6 %.
// Bounded: one counter for each bucket, whatever is recorded; from an hour on all durations are one
// (kMostMicroseconds). Thread: one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace sluice {

class LatencyHistogram {
 public:
  static constexpr std::uint64_t kMostMicroseconds = std::uint64_t{3600} * 1'000'000;

  // `bits`, 1 to 14: each power of two is divided into 2^bits buckets.
  explicit LatencyHistogram(unsigned bits = 10);

  void record(Duration latency) noexcept;
  // `other` may have other bits: its buckets are then counted at their middles.
  void add(const LatencyHistogram& other) noexcept;
  void clear() noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t max_us() const noexcept { return max_; }
  [[nodiscard]] std::uint64_t min_us() const noexcept { return count_ == 0 ? 0 : min_; }
  [[nodiscard]] double mean_us() const noexcept;
  // The least latency that `percent` of all (0 to 100) do not exceed, in microseconds; of a bucket
  // its upper end. 0 where nothing was recorded.
  [[nodiscard]] double percentile_us(double percent) const noexcept;
  // How many were at most this long.
  [[nodiscard]] std::uint64_t count_up_to(std::uint64_t microseconds) const noexcept;

 private:
  [[nodiscard]] std::size_t bucket_of(std::uint64_t us) const noexcept;
  [[nodiscard]] std::uint64_t first_of(std::size_t bucket) const noexcept;
  void count_in(std::uint64_t us, std::uint64_t times) noexcept;

  unsigned bits_;
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  std::uint64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace sluice
