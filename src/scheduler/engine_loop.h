// EngineLoop: the thread that owns the model and all scheduling state. One turn: accept, reap,
// expire, resume, compose, step, deliver. It sleeps on the doorbell when there is nothing to do.
// Bounded by Limits (max_sequences, max_step_tokens, park_limit); it never waits for a reader: a
// full stream is parked. Thread: engine, except request_stop and last_turn (any).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "contract/limits.h"
#include "engine/engine.h"
#include "scheduler/admission.h"
#include "scheduler/loop_metrics.h"
#include "scheduler/queue_pace.h"
#include "scheduler/sequence_table.h"
#include "scheduler/step_composer.h"
#include "stream/delivery.h"
#include "stream/doorbell.h"

namespace sluice {

class EngineLoop {
 public:
  // All references outlive the loop.
  EngineLoop(Engine& engine, Admission& admission, Doorbell& doorbell, Delivery& delivery,
             Clock& clock, Metrics& metrics, const Limits& limits);
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  // Turns until request_stop; then ends what is left with kUnavailable and returns. Close the
  // admission before stopping: what is submitted after that is never looked at.
  void run() noexcept;
  void request_stop() noexcept;

  // One turn without waiting. False: there was nothing to compute.
  bool turn() noexcept;

  // When the loop last came round: a wedged engine shows by its age while there is work.
  [[nodiscard]] TimePoint last_turn() const noexcept {
    return last_turn_.load(std::memory_order_relaxed);
  }

 private:
  void accept();
  void refuse_if_late(Request& request);
  void reap();
  void expire();
  void resume();
  void make_room();
  void step();
  void deliver();
  void deliver_to(Sequence& sequence, Sampled& sampled);
  void count_token(Request& request);
  void out_of_kv();
  void put_back_batch();
  void end_failed(Request& request, std::string_view why);
  void end(Request& request, Counter& how, Error error);
  void touch(Request& request);
  void publish_load();
  [[nodiscard]] bool batch_is_dead() noexcept;
  [[nodiscard]] TimePoint next_event() const;

  Engine& engine_;
  Admission& admission_;
  Doorbell& doorbell_;
  Delivery& delivery_;
  Clock& clock_;
  const Limits limits_;
  LoopMetrics metrics_;
  SequenceTable table_;
  StepComposer composer_;
  QueuePace pace_;
  const AbortCheck abort_;

  TimePoint now_{};
  Doorbell::Rings rings_;
  std::vector<Admission::Admitted> submitted_;
  StepResult result_;
  std::size_t live_row_ = 0;  // a row of the batch that was alive when last looked at
  std::vector<std::shared_ptr<WireQueue>> touched_wires_;
  std::uint64_t tokens_in_window_ = 0;
  TimePoint window_start_{};
  float tokens_per_second_ = 0;

  std::atomic<bool> stop_ = false;
  std::atomic<TimePoint> last_turn_{TimePoint{}};
};

}  // namespace sluice
