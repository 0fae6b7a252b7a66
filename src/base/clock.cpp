#include "base/clock.h"

namespace sluice {

TimePoint SystemClock::now() const noexcept { return std::chrono::steady_clock::now(); }

void SystemClock::wait_until(CondVar& condition, Mutex& mutex, TimePoint when) noexcept {
  if (when == kForever) {
    condition.wait(mutex);
  } else {
    condition.wait_until(mutex, when);
  }
}

TimePoint ManualClock::now() const noexcept {
  MutexLock lock(mutex_);
  return now_;
}

void ManualClock::wait_until(CondVar& condition, Mutex& mutex, TimePoint when) noexcept {
  if (now() >= when) return;
  // Real time only decides how soon an advance is noticed, never what is observed after it.
  condition.wait_until(mutex, std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
}

void ManualClock::advance(Duration by) {
  MutexLock lock(mutex_);
  now_ += by;
}

}  // namespace sluice
