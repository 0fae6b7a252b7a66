#include "stream/doorbell.h"

#include <utility>

namespace sluice {

void Doorbell::ring() noexcept {
  MutexLock lock(mutex_);
  rung_ = true;
  rung_condition_.notify_one();
}

void Doorbell::ring_readable(RequestId id) noexcept {
  MutexLock lock(mutex_);
  rings_.readable.push_back(id);
  rung_ = true;
  rung_condition_.notify_one();
}

void Doorbell::ring_dropped(RequestId id) noexcept {
  MutexLock lock(mutex_);
  rings_.dropped.push_back(id);
  rung_ = true;
  rung_condition_.notify_one();
}

void Doorbell::take(Rings& out) noexcept {
  out.readable.clear();
  out.dropped.clear();
  MutexLock lock(mutex_);
  std::swap(out, rings_);
  rung_ = false;
}

void Doorbell::wait_until(TimePoint when) noexcept {
  MutexLock lock(mutex_);
  while (!rung_ && clock_.now() < when) clock_.wait_until(rung_condition_, mutex_, when);
}

}  // namespace sluice
