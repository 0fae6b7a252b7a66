// plan: what the next forward pass computes. A pure function of how many tokens each sequence still
// owes and of the budgets. Decode rows come first, all of them; prefill gets what the budgets
// leave, cut into chunks. A quarter of it goes to the oldest prefill, the rest to those with the
// least left, so that a short prompt doesn't wait for a long one, nor the long one for ever.
// Thread: any (no state).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice {

struct PlanState {
  // Tokens of each sequence that are not in its KV yet, at least 1; exactly 1 is a decode row,
  // waiting or not.
  std::span<const std::int32_t>
      running;  // those that have a slot, in any order that stays the same from step to step
  std::span<const std::int32_t>
      waiting;  // those that have none, in the order in which they are to get one
};

struct PlanBudgets {
  std::int32_t step_tokens = 0;     // rows in one step
  std::int32_t prefill_tokens = 0;  // of them, rows of prefill
  std::int32_t free_slots = 0;
  std::uint32_t first =
      0;  // where among `running` to begin with decode rows, should they be more than step_tokens
};

struct PlanGrant {
  std::uint32_t index = 0;  // into running or waiting
  std::int32_t tokens = 0;  // at least 1, at most what the sequence owes

  friend bool operator==(const PlanGrant&, const PlanGrant&) = default;
};

struct Plan {
  std::vector<PlanGrant> running;
  std::vector<PlanGrant> waiting;  // each gets a slot
};

[[nodiscard]] Plan plan(const PlanState& state, const PlanBudgets& budgets);

}  // namespace sluice
