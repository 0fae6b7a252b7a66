// WireQueue: which token streams of one wire have something to read (a Generate call has one
// stream, an Attach call has many). The engine thread marks streams during a step; Delivery wakes
// each marked wire once after the step, so that a wire can send all of its streams' tokens in one
// message. Bounded by the number of the wire's streams: each is listed at most once until it is
// taken (its TokenStream sees to that). Thread: mark engine; wake delivery; take any one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace sluice {

// A stream's number on its wire, chosen by the wire.
using WireId = std::uint64_t;

class WireQueue {
 public:
  // `wake` runs on the delivery thread. It must tolerate that its wire is gone, and must not block.
  explicit WireQueue(std::function<void()> wake) : wake_(std::move(wake)) {}
  WireQueue(const WireQueue&) = delete;
  WireQueue& operator=(const WireQueue&) = delete;

  // True if this wire must now be given to Delivery: it was not, since its last wake.
  [[nodiscard]] bool mark(WireId id) noexcept EXCLUDES(mutex_);

  void wake() noexcept EXCLUDES(mutex_);

  // The streams marked since the last take, in the order of their marking. Swaps into `out`,
  // cleared first.
  void take(std::vector<WireId>& out) noexcept EXCLUDES(mutex_);

 private:
  const std::function<void()> wake_;
  Mutex mutex_;
  bool in_delivery_ GUARDED_BY(mutex_) = false;
  std::vector<WireId> marked_ GUARDED_BY(mutex_);
};

}  // namespace sluice
