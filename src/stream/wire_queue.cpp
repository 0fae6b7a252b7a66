#include "stream/wire_queue.h"

namespace sluice {

bool WireQueue::mark(WireId id) noexcept {
  {
    MutexLock lock(mutex_);
    marked_.push_back(id);
  }
  return !in_delivery_.exchange(true, std::memory_order_acq_rel);
}

void WireQueue::wake() noexcept {
  // Cleared first: a mark that comes while the wire is being woken must bring another wake.
  in_delivery_.store(false, std::memory_order_release);
  wake_();
}

void WireQueue::take(std::vector<WireId>& out) noexcept {
  out.clear();
  MutexLock lock(mutex_);
  std::swap(out, marked_);
}

}  // namespace sluice
