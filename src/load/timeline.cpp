#include "load/timeline.h"

#include <algorithm>
#include <utility>

namespace sluice {

void TimelineInterval::add(const TimelineInterval& other) noexcept {
  end = std::max(end, other.end);
  ttft.add(other.ttft);
  itl.add(other.itl);
  tokens += other.tokens;
  ended += other.ended;
  failed += other.failed;
  running = std::max(running, other.running);
}

void TimelineInterval::clear() noexcept {
  ttft.clear();
  itl.clear();
  tokens = ended = failed = 0;
  running = 0;
}

double TimelineInterval::seconds() const noexcept {
  return std::chrono::duration<double>(end - begin).count();
}

void Timeline::close_interval(TimePoint now, TimelineInterval interval) {
  interval.begin = std::exchange(closed_, now - start_);
  interval.end = closed_;
  last_ = interval;
  if (in_last_ > 0 && in_last_ < joined_) {
    intervals_.back().add(interval);
    ++in_last_;
    return;
  }
  if (intervals_.size() == kMost) {
    for (std::size_t i = 0; i < kMost / 2; ++i) {
      TimelineInterval pair = std::move(intervals_[2 * i]);
      pair.add(intervals_[2 * i + 1]);
      intervals_[i] = std::move(pair);
    }
    intervals_.resize(kMost / 2);
    joined_ *= 2;
  }
  intervals_.push_back(std::move(interval));
  in_last_ = 1;
}

}  // namespace sluice
