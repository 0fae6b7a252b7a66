#include "load/load_stream.h"

#include <utility>

namespace sluice {

void LoadStream::begin(std::uint64_t number, TimePoint intended, bool counted,
                       PlannedRequest planned) {
  times_ = {.number = number,
            .intended = intended,
            .begun = std::chrono::steady_clock::now(),
            .counted = counted,
            .slow = planned.read_tokens_per_second.has_value()};
  last_tokens_ = 0;
  read_rate_ = planned.read_tokens_per_second.value_or(0);
  cancel_at_ = planned.cancel_after_tokens.value_or(0);
  running_ = number;
  const auto cancel_after = planned.cancel_after;
  start(planned);  // it may be over before this returns
  if (!cancel_after) return;
  events_.after(*cancel_after, [this, number] {
    if (running_ != number) return;
    cancelled_number_ = number;
    cancel(number);
  });
}

void LoadStream::cut() noexcept {
  const std::uint64_t number = running_;
  if (number == UINT64_MAX) return;
  cut_number_ = number;
  cancel(number);
}

bool LoadStream::receive(std::uint32_t tokens) noexcept {
  const TimePoint before = times_.tokens > 0 ? times_.last : kForever;
  times_.last = std::chrono::steady_clock::now();
  if (times_.tokens == 0) times_.first = times_.last;
  times_.tokens += tokens;
  ++times_.messages;
  last_tokens_ = tokens;
  events_.received(*this, tokens, before);
  if (cancel_at_ == 0 || times_.tokens < cancel_at_) return false;
  cancel_at_ = 0;
  cancelled_number_ = times_.number;
  return true;
}

Duration LoadStream::pause() const noexcept {
  if (read_rate_ <= 0) return Duration::zero();
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(last_tokens_ / read_rate_));
}

void LoadStream::end(const LoadOutcome& outcome) noexcept {
  times_.ended = std::chrono::steady_clock::now();
  times_.cut = cut_number_ == times_.number && !outcome.error.empty();
  times_.cancelled = cancelled_number_ == times_.number && !outcome.error.empty() && !times_.cut;
  running_ = UINT64_MAX;
  events_.ended(*this, outcome);
}

}  // namespace sluice
