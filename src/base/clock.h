// Clock: the time, and waiting for it, so that tests can set it by hand.
// All time in Sluice is monotonic (TimePoint); the wall clock appears in logs only.
// Thread: any.
#pragma once

#include <chrono>

#include "base/mutex.h"

namespace sluice {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

// "Never", for time-outs that aren't set.
inline constexpr TimePoint kForever = TimePoint::max();

class Clock {
 public:
  virtual ~Clock() = default;

  [[nodiscard]] virtual TimePoint now() const noexcept = 0;

  // Waits on `condition` until it is notified or `when` has come; may return early, as CondVar
  // does. kForever: no time-out.
  virtual void wait_until(CondVar& condition, Mutex& mutex, TimePoint when) noexcept
      REQUIRES(mutex) = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override;
  void wait_until(CondVar& condition, Mutex& mutex, TimePoint when) noexcept override
      REQUIRES(mutex);
};

// Stands still until it is told to advance; then whoever waits for a time that has come wakes up.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override EXCLUDES(mutex_);
  void wait_until(CondVar& condition, Mutex& mutex, TimePoint when) noexcept override
      REQUIRES(mutex);
  void advance(Duration by) EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  TimePoint now_ GUARDED_BY(mutex_) = TimePoint{std::chrono::hours{1}};
};

}  // namespace sluice
