#include "load/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace sluice {

LatencyHistogram::LatencyHistogram(unsigned bits) : bits_(bits) {
  CHECK(bits >= 1 && bits <= 14, "a histogram's bits are the program's own choice");
  buckets_.resize(bucket_of(kMostMicroseconds) + 1);
}

// Values below 2^bits have a bucket each; above, each power of two has 2^bits of them.
std::size_t LatencyHistogram::bucket_of(std::uint64_t us) const noexcept {
  const std::uint64_t first = std::uint64_t{1} << bits_;
  if (us < first) return us;
  const unsigned octave = static_cast<unsigned>(std::bit_width(us)) - 1 - bits_;
  return (std::size_t{octave} << bits_) + (us >> octave);
}

std::uint64_t LatencyHistogram::first_of(std::size_t bucket) const noexcept {
  const std::size_t octave = bucket >> bits_;
  if (octave < 2) return bucket;
  const std::size_t within = bucket - ((octave - 1) << bits_);
  return std::uint64_t{within} << (octave - 1);
}

void LatencyHistogram::record(Duration latency) noexcept {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(latency).count();
  count_in(static_cast<std::uint64_t>(std::max<std::int64_t>(us, 0)), 1);
}

void LatencyHistogram::count_in(std::uint64_t us, std::uint64_t times) noexcept {
  us = std::min(us, kMostMicroseconds);
  buckets_[bucket_of(us)] += times;
  count_ += times;
  min_ = std::min(min_, us);
  max_ = std::max(max_, us);
  sum_ += static_cast<double>(us) * static_cast<double>(times);
}

void LatencyHistogram::add(const LatencyHistogram& other) noexcept {
  if (other.count_ == 0) return;
  if (other.bits_ != bits_) {
    for (std::size_t i = 0; i < other.buckets_.size(); ++i) {
      if (other.buckets_[i] == 0) continue;
      const std::uint64_t first = other.first_of(i);
      count_in(first + (other.first_of(i + 1) - 1 - first) / 2, other.buckets_[i]);
    }
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
    return;
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

void LatencyHistogram::clear() noexcept {
  if (count_ == 0) return;
  std::fill(buckets_.begin(), buckets_.end(), 0);
  count_ = 0;
  min_ = UINT64_MAX;
  max_ = 0;
  sum_ = 0;
}

double LatencyHistogram::mean_us() const noexcept {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

double LatencyHistogram::percentile_us(double percent) const noexcept {
  if (count_ == 0) return 0;
  const double share = std::clamp(percent, 0.0, 100.0) / 100;
  // a share such as 0.999 is not exact in binary: its last bit must not ask for one more
  const double exact = share * static_cast<double>(count_);
  const auto wanted =
      std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(exact * (1 - 1e-12))));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen < wanted) continue;
    return static_cast<double>(std::clamp(first_of(i + 1) - 1, min_, max_));
  }
  return static_cast<double>(max_);
}

std::uint64_t LatencyHistogram::count_up_to(std::uint64_t microseconds) const noexcept {
  const std::size_t last = bucket_of(std::min(microseconds, kMostMicroseconds));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i <= last; ++i) seen += buckets_[i];
  return seen;
}

}  // namespace sluice
