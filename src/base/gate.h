// Gate: stops new work and tells when existing work is done (after Seastar's gate).
// A Pass is held for as long as the work lasts; close() refuses further passes; wait_empty()
// returns when the last is gone. Bounded by nothing itself: it only counts. Thread: any. A Gate
// must outlive its passes.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace sluice {

class Gate {
 public:
  class Pass {
   public:
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_ != nullptr) gate_->leave();
    }

   private:
    friend class Gate;
    explicit Pass(Gate* gate) noexcept : gate_(gate) {}
    Gate* gate_;
  };

  // Nothing once the gate is closed.
  [[nodiscard]] std::optional<Pass> enter() noexcept EXCLUDES(mutex_);
  void close() noexcept EXCLUDES(mutex_);
  [[nodiscard]] bool closed() const noexcept EXCLUDES(mutex_);
  [[nodiscard]] std::size_t count() const noexcept EXCLUDES(mutex_);

  // False if the time came before the last pass was gone.
  [[nodiscard]] bool wait_empty(Clock& clock, TimePoint until) noexcept EXCLUDES(mutex_);

 private:
  void leave() noexcept EXCLUDES(mutex_);

  mutable Mutex mutex_;
  CondVar empty_;
  std::size_t count_ GUARDED_BY(mutex_) = 0;
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace sluice
