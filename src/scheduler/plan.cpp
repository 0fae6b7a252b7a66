#include "scheduler/plan.h"

#include <algorithm>

namespace sluice {
namespace {

struct Prefill {
  std::uint32_t index;
  bool waiting;
  std::int32_t owed;
  std::int32_t granted = 0;

  std::int32_t grant(std::int32_t most) noexcept {
    const std::int32_t more = std::clamp(most, 0, owed - granted);
    granted += more;
    return more;
  }
};

std::size_t candidates(const PlanState& state, const PlanBudgets& budgets) {
  return std::min(state.waiting.size(), static_cast<std::size_t>(std::max(budgets.free_slots, 0)));
}

// Returns the number of rows granted.
std::int32_t grant_decodes(const PlanState& state, const PlanBudgets& budgets, Plan& made) {
  const auto count = static_cast<std::uint32_t>(state.running.size());
  std::int32_t rows = 0;
  for (std::uint32_t i = 0; i < count && rows < budgets.step_tokens; ++i) {
    const std::uint32_t index = (budgets.first + i) % count;
    if (state.running[index] != 1) continue;
    made.running.push_back({index, 1});
    ++rows;
  }
  for (std::uint32_t i = 0; i < candidates(state, budgets) && rows < budgets.step_tokens; ++i) {
    if (state.waiting[i] != 1) continue;
    made.waiting.push_back({i, 1});
    ++rows;
  }
  return rows;
}

std::vector<Prefill> prefills(const PlanState& state, const PlanBudgets& budgets) {
  std::vector<Prefill> found;
  for (std::uint32_t i = 0; i < state.running.size(); ++i) {
    if (state.running[i] != 1) found.push_back({i, false, state.running[i]});
  }
  for (std::uint32_t i = 0; i < candidates(state, budgets); ++i) {
    if (state.waiting[i] != 1) found.push_back({i, true, state.waiting[i]});
  }
  return found;
}

}  // namespace

Plan plan(const PlanState& state, const PlanBudgets& budgets) {
  Plan made;
  made.running.reserve(state.running.size());
  const std::int32_t rows = grant_decodes(state, budgets, made);
  std::int32_t left = std::min(budgets.step_tokens - rows, budgets.prefill_tokens);
  if (left <= 0) return made;

  std::vector<Prefill> unfinished = prefills(state, budgets);
  if (unfinished.empty()) return made;
  left -= unfinished.front().grant(std::max(left / 4, 1));
  std::vector<Prefill*> shortest_first;
  shortest_first.reserve(unfinished.size());
  for (Prefill& prefill : unfinished) shortest_first.push_back(&prefill);
  std::stable_sort(shortest_first.begin(), shortest_first.end(),
                   [](const Prefill* a, const Prefill* b) { return a->owed < b->owed; });
  for (Prefill* prefill : shortest_first) left -= prefill->grant(left);

  for (const Prefill& prefill : unfinished) {
    if (prefill.granted == 0) continue;
    (prefill.waiting ? made.waiting : made.running).push_back({prefill.index, prefill.granted});
  }
  return made;
}

}  // namespace sluice
