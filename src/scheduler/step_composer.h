// StepComposer: turns the table's state into the batch of one step: asks plan() what to compute,
// starts the waiting sequences that it chose, and lays out the rows. Learns the cost of steps
// (StepCost) to keep prefill from stretching them. Bounded by Limits::max_step_tokens. Thread:
// engine.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "contract/limits.h"
#include "engine/batch.h"
#include "engine/engine.h"
#include "scheduler/plan.h"
#include "scheduler/sequence_table.h"
#include "scheduler/step_cost.h"

namespace sluice {

class StepComposer {
 public:
  StepComposer(Engine& engine, SequenceTable& table, const Limits& limits);

  // Makes batch() and rows(). False: there is nothing to compute.
  bool compose();
  void observe(Duration took) noexcept;

  [[nodiscard]] const Batch& batch() const noexcept { return batch_; }
  // The sequence of each Work of the batch.
  [[nodiscard]] const std::vector<Sequence*>& rows() const noexcept { return rows_; }
  [[nodiscard]] std::int32_t decode_rows() const noexcept { return decode_rows_; }
  [[nodiscard]] std::int32_t prefill_rows() const noexcept { return prefill_rows_; }

 private:
  void look_at_running();
  void look_at_waiting();
  void start(Sequence& sequence);
  void add_rows(Sequence& sequence, std::int32_t tokens);

  Engine& engine_;
  SequenceTable& table_;
  const Limits limits_;
  StepCost cost_;
  std::uint32_t rotation_ = 0;

  std::vector<std::int32_t> running_owed_, waiting_owed_;
  std::vector<Sequence*> waiting_;
  // What running sequences will have in the KV cache after their next token.
  std::uint64_t kv_promised_tokens_ = 0;

  Batch batch_;
  std::vector<Sequence*> rows_;
  std::int32_t decode_rows_ = 0;
  std::int32_t prefill_rows_ = 0;
};

}  // namespace sluice
