// EngineLoop: the thread that owns the model and all scheduling state. One turn: accept, reap, expire, resume, plan, step,
// deliver. It sleeps on the doorbell when there is nothing to do.
// Bounded by Limits (max_sequences, max_step_tokens, park_limit); it never waits for a reader: a full stream is parked.
// Thread: engine, except request_stop (any).
#pragma once

#include <atomic>
#include <memory>

#include "base/clock.h"
#include "base/metrics.h"
#include "contract/limits.h"
#include "engine/engine.h"
#include "scheduler/admission.h"
#include "stream/delivery.h"
#include "stream/doorbell.h"

namespace sluice {

class EngineLoop {
 public:
  // All references outlive the loop.
  EngineLoop(Engine& engine, Admission& admission, Doorbell& doorbell, Delivery& delivery, Clock& clock, Metrics& metrics,
             const Limits& limits);
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  // Turns until request_stop; then ends what is left with kUnavailable and returns.
  void run() noexcept;
  void request_stop() noexcept;

  // One turn without waiting, for tests. False: there was nothing to compute.
  bool turn() noexcept;

  // The last time that the loop came round: a wedged engine shows by its age. Thread: any.
  [[nodiscard]] TimePoint last_turn() const noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
