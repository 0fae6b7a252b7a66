#include "base/gate.h"

namespace sluice {

std::optional<Gate::Pass> Gate::enter() noexcept {
  MutexLock lock(mutex_);
  if (closed_) return std::nullopt;
  ++count_;
  return Pass(this);
}

void Gate::close() noexcept {
  MutexLock lock(mutex_);
  closed_ = true;
}

bool Gate::closed() const noexcept {
  MutexLock lock(mutex_);
  return closed_;
}

std::size_t Gate::count() const noexcept {
  MutexLock lock(mutex_);
  return count_;
}

bool Gate::wait_empty(Clock& clock, TimePoint until) noexcept {
  MutexLock lock(mutex_);
  while (count_ != 0) {
    if (clock.now() >= until) return false;
    clock.wait_until(empty_, mutex_, until);
  }
  return true;
}

void Gate::leave() noexcept {
  MutexLock lock(mutex_);
  // Notified under the lock: the waiter may destroy the gate as soon as it sees zero.
  if (--count_ == 0) empty_.notify_all();
}

}  // namespace sluice
