#include "scheduler/queue_pace.h"

#include <chrono>

namespace sluice {
namespace {

// Weight of what is new in the mean: some thirty starts decide.
constexpr double kWeight = 0.06;

}  // namespace

void QueuePace::step(TimePoint now, std::size_t started, std::size_t waiting) noexcept {
  if (started > 0 && since_) {
    const double us = std::chrono::duration<double, std::micro>(now - *since_).count() /
                      static_cast<double>(started);
    interval_us_ = seen_ == 0 ? us : interval_us_ + kWeight * (us - interval_us_);
    if (seen_ < kFewest) ++seen_;
  }
  if (waiting == 0) {
    since_.reset();
  } else if (started > 0 || !since_) {
    since_ = now;
  }
}

std::optional<Duration> QueuePace::wait(std::size_t ahead) const noexcept {
  if (seen_ < kFewest) return std::nullopt;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::micro>(interval_us_ * static_cast<double>(ahead)));
}

}  // namespace sluice
