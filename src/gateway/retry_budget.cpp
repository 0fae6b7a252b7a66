#include "gateway/retry_budget.h"

#include <chrono>

namespace sluice {
namespace {

std::int64_t seconds_of(TimePoint now) noexcept {
  return std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
}

}  // namespace

RetryBudget::Second& RetryBudget::second(TimePoint now) noexcept {
  const std::int64_t at = seconds_of(now);
  Second& second = seconds_[static_cast<std::size_t>(at % kSeconds)];
  if (second.at != at) second = Second{.at = at};
  return second;
}

void RetryBudget::count_request(TimePoint now) noexcept { ++second(now).requests; }

bool RetryBudget::take(TimePoint now) noexcept {
  const std::int64_t oldest = seconds_of(now) - kSeconds + 1;
  std::uint64_t requests = 0;
  std::uint64_t retries = 0;
  for (const Second& one : seconds_) {
    if (one.at < oldest) continue;
    requests += one.requests;
    retries += one.retries;
  }
  if (retries >= kAlways && retries * 100 >= requests * percent_) return false;
  ++second(now).retries;
  return true;
}

}  // namespace sluice
