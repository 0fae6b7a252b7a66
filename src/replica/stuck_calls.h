// StuckCalls: the open calls of one method, of which those are cut (reset) whose client has taken
// nothing of what it was given for `patience`. gRPC keeps a call, finished or not, until its client
// has read so far or its connection closes: for as long as somebody likes. Bounded by the calls.
// Thread: look one at a time, on a thread of ours; an Entry its call's.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_set>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"

namespace grpc {
class CallbackServerContext;
}

namespace sluice {

class StuckCalls {
 public:
  StuckCalls(Clock& clock, Duration patience, Counter cut) noexcept
      : clock_(clock), patience_(patience), cut_(cut) {}
  StuckCalls(const StuckCalls&) = delete;
  StuckCalls& operator=(const StuckCalls&) = delete;

  class Entry {
   public:
    // Both outlive it: leave() comes within OnDone.
    Entry(StuckCalls& calls, grpc::CallbackServerContext& call);
    void leave() noexcept;
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    // In turn: a write was begun, or the end; the write is done.
    void given() noexcept { turns_.fetch_add(1, std::memory_order_relaxed); }
    void taken() noexcept { turns_.fetch_add(1, std::memory_order_relaxed); }

   private:
    friend class StuckCalls;
    StuckCalls& calls_;
    grpc::CallbackServerContext& call_;
    std::atomic<std::uint32_t> turns_ = 0;  // odd: something is out
    // Of look.
    std::uint32_t seen_turns_ = 0;
    TimePoint since_{};
  };

  // Cuts those that are stuck now.
  void look() noexcept EXCLUDES(mutex_);

 private:
  Clock& clock_;
  const Duration patience_;
  Counter cut_;
  Mutex mutex_;
  std::unordered_set<Entry*> open_ GUARDED_BY(mutex_);
};

}  // namespace sluice
