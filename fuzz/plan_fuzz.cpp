// What holds for every plan, whatever the state and the budgets.
#include "scheduler/plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "input.h"

namespace sluice {
namespace {

using Owed = std::vector<std::int32_t>;

Owed read_owed(fuzz::Input& input) {
  Owed owed(input.number(40));
  for (std::int32_t& tokens : owed) {
    // Half of them decode, as in a real batch.
    tokens = input.byte() % 2 == 0 ? 1 : 1 + static_cast<std::int32_t>(input.number(5000));
  }
  return owed;
}

// Tokens granted to each; checks that no grant is out of bounds or given twice.
Owed granted_to(const Owed& owed, const std::vector<PlanGrant>& grants) {
  Owed granted(owed.size(), 0);
  for (const PlanGrant& grant : grants) {
    CHECK(grant.index < owed.size(), "a grant is for a sequence of the state");
    CHECK(granted[grant.index] == 0, "one grant for each sequence");
    CHECK(grant.tokens >= 1 && grant.tokens <= owed[grant.index], "no more than it owes");
    granted[grant.index] = grant.tokens;
  }
  return granted;
}

std::int32_t sum(const Owed& tokens) { return std::accumulate(tokens.begin(), tokens.end(), 0); }

// Returns the rows that they left.
std::int32_t check_decodes(const PlanState& state, const Owed& running, const Owed& waiting,
                           const PlanBudgets& budgets) {
  std::int32_t left = std::max(budgets.step_tokens, 0);
  for (std::size_t i = 0; i < running.size(); ++i) {
    const std::size_t at = (budgets.first + i) % running.size();
    if (state.running[at] != 1) continue;
    CHECK((running[at] == 1) == (left > 0), "decode rows come first, from `first` on");
    left = std::max(left - 1, 0);
  }
  const auto slots = static_cast<std::size_t>(std::max(budgets.free_slots, 0));
  for (std::size_t i = 0; i < std::min(slots, waiting.size()); ++i) {
    if (state.waiting[i] != 1) continue;
    CHECK((waiting[i] == 1) == (left > 0), "then those that wait with one token");
    left = std::max(left - 1, 0);
  }
  return left;
}

void check_prefills(const PlanState& state, const Owed& running, const Owed& waiting,
                    const PlanBudgets& budgets, std::int32_t left) {
  std::int32_t prefilled = 0;
  std::int32_t could = 0;
  const auto look = [&](std::int32_t owed, std::int32_t granted) {
    if (owed == 1) return;
    prefilled += granted;
    could += owed;
  };
  for (std::size_t i = 0; i < running.size(); ++i) look(state.running[i], running[i]);
  const auto slots = static_cast<std::size_t>(std::max(budgets.free_slots, 0));
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (i < slots) {
      look(state.waiting[i], waiting[i]);
    } else {
      CHECK(waiting[i] == 0, "slots go to those that wait in front");
    }
  }
  const std::int32_t room = std::max(std::min(left, budgets.prefill_tokens), 0);
  CHECK(prefilled == std::min(room, could), "prefill gets all that the budgets leave, and no more");

  const auto oldest = std::find_if(state.running.begin(), state.running.end(),
                                   [](std::int32_t owed) { return owed != 1; });
  if (oldest == state.running.end() || room == 0) return;
  const std::int32_t share = std::min(*oldest, std::max(room / 4, 1));
  CHECK(running[static_cast<std::size_t>(oldest - state.running.begin())] >= share,
        "the oldest prefill gets its quarter");
}

void check(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  PlanBudgets budgets;
  budgets.step_tokens = static_cast<std::int32_t>(input.number(600));
  budgets.prefill_tokens = static_cast<std::int32_t>(input.number(600));
  budgets.free_slots = static_cast<std::int32_t>(input.number(40));
  budgets.first = input.number(1000);
  const Owed running = read_owed(input);
  const Owed waiting = read_owed(input);
  const PlanState state{running, waiting};

  const Plan made = plan(state, budgets);
  const Owed to_running = granted_to(running, made.running);
  const Owed to_waiting = granted_to(waiting, made.waiting);
  CHECK(sum(to_running) + sum(to_waiting) <= budgets.step_tokens,
        "a step holds its budget of rows");
  const std::int32_t left = check_decodes(state, to_running, to_waiting, budgets);
  check_prefills(state, to_running, to_waiting, budgets, left);
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::check(data, size);
  return 0;
}
