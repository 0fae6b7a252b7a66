// Doorbell: how token streams and the admission mailbox wake the engine thread, and what for.
// Bounded: a stream rings at most once for each time it was parked and once when its reader is
// dropped. Thread: ring_* any; wait and take_* engine.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace sluice {

// A request's number in its replica, from its admission on.
enum class RequestId : std::uint64_t {};

class Doorbell {
 public:
  struct Rings {
    std::vector<RequestId> readable;  // parked streams that were read down to low water
    std::vector<RequestId> dropped;   // streams whose reader is gone
  };

  explicit Doorbell(Clock& clock) noexcept : clock_(clock) {}

  void ring() noexcept EXCLUDES(mutex_);
  void ring_readable(RequestId id) noexcept EXCLUDES(mutex_);
  void ring_dropped(RequestId id) noexcept EXCLUDES(mutex_);

  // Takes what was rung since the last call, into `out` (cleared first; its vectors are swapped in,
  // so capacity goes round).
  void take(Rings& out) noexcept EXCLUDES(mutex_);

  // Returns when somebody rang since the last take(), or when the time has come.
  void wait_until(TimePoint when) noexcept EXCLUDES(mutex_);

 private:
  Clock& clock_;
  Mutex mutex_;
  CondVar rung_condition_;
  bool rung_ GUARDED_BY(mutex_) = false;
  Rings rings_ GUARDED_BY(mutex_);
};

}  // namespace sluice
