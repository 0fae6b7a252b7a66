#include "stream/wire_queue.h"

namespace sluice {

bool WireQueue::mark(WireId id) noexcept {
  MutexLock lock(mutex_);
  marked_.push_back(id);
  return !std::exchange(in_delivery_, true);
}

void WireQueue::wake() noexcept {
  {
    // Before the wake: a mark that comes while the wire is being woken must bring another.
    MutexLock lock(mutex_);
    in_delivery_ = false;
  }
  wake_();
}

void WireQueue::take(std::vector<WireId>& out) noexcept {
  out.clear();
  MutexLock lock(mutex_);
  std::swap(out, marked_);
}

}  // namespace sluice
