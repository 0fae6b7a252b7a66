#include "replica/stuck_calls.h"

#include <grpcpp/server_context.h>

namespace sluice {

StuckCalls::Entry::Entry(StuckCalls& calls, grpc::CallbackServerContext& call)
    : calls_(calls), call_(call) {
  const MutexLock lock(calls_.mutex_);
  calls_.open_.insert(this);
}

void StuckCalls::Entry::leave() noexcept {
  const MutexLock lock(calls_.mutex_);
  calls_.open_.erase(this);
}

// The lock is held while gRPC is called, so that no call ends meanwhile. gRPC runs no reactor of
// ours within TryCancel on a thread that is not its own.
void StuckCalls::look() noexcept {
  const TimePoint now = clock_.now();
  const MutexLock lock(mutex_);
  for (Entry* const entry : open_) {
    const std::uint32_t turns = entry->turns_.load(std::memory_order_relaxed);
    const bool is_out = turns % 2 == 1;
    if (!is_out || turns != entry->seen_turns_) {
      entry->seen_turns_ = turns;
      entry->since_ = now;
    } else if (now - entry->since_ >= patience_) {
      entry->since_ = now;
      entry->call_.TryCancel();
      cut_.add();
    }
  }
}

}  // namespace sluice
