#include "scheduler/step_composer.h"

#include <algorithm>
#include <span>

namespace sluice {
namespace {

// A prefill gets at least this many rows of a step, so that it ends in good time beside any number
// of decode rows.
constexpr std::int32_t kFewestPrefillRows = 8;

// Choices of one prompt share its prefill: the first computes it, the others copy.
bool waits_for_first_choice(const Sequence& sequence) noexcept {
  const Sequence& first = sequence.request->choices.front();
  return &first != &sequence && first.state != Sequence::State::kDone && first.generated == 0;
}

// The first choice's KV holds the whole prompt but, perhaps, its last token, which must be computed
// anew for its logits.
bool can_copy_prompt(const Sequence& sequence) noexcept {
  const Sequence& first = sequence.request->choices.front();
  const auto prompt = static_cast<std::int32_t>(sequence.request->prompt_tokens);
  return &first != &sequence && first.slot && sequence.generated == 0 && prompt > 1 &&
         first.computed >= prompt - 1;
}

}  // namespace

StepComposer::StepComposer(Engine& engine, SequenceTable& table, const Limits& limits)
    : engine_(engine),
      table_(table),
      limits_(limits),
      cost_(limits.prefill_stretch, kFewestPrefillRows) {}

bool StepComposer::compose() {
  look_at_running();
  look_at_waiting();
  batch_.work.clear();
  rows_.clear();
  decode_rows_ = prefill_rows_ = 0;

  const auto decoding =
      static_cast<std::int32_t>(std::count(running_owed_.begin(), running_owed_.end(), 1));
  const auto most = static_cast<std::int32_t>(limits_.max_step_tokens);
  const auto best_prefill = static_cast<std::int32_t>(
      std::min(limits_.max_step_tokens, engine_.info().best_prefill_tokens));
  const Plan made = plan({running_owed_, waiting_owed_},
                         {.step_tokens = most,
                          .prefill_tokens = cost_.prefill_rows(decoding, best_prefill),
                          .free_slots = static_cast<std::int32_t>(table_.free_slots()),
                          .first = rotation_});
  if (decoding > most) rotation_ += static_cast<std::uint32_t>(most);
  for (const PlanGrant& grant : made.running)
    add_rows(*table_.running()[grant.index], grant.tokens);
  for (const PlanGrant& grant : made.waiting) {
    Sequence& sequence = *waiting_[grant.index];
    start(sequence);
    add_rows(sequence, std::min(grant.tokens, sequence.owed()));
  }
  return !rows_.empty();
}

void StepComposer::observe(Duration took) noexcept {
  cost_.observe(decode_rows_, prefill_rows_, took);
}

void StepComposer::look_at_running() {
  running_owed_.clear();
  kv_promised_tokens_ = 0;
  for (const Sequence* sequence : table_.running()) {
    running_owed_.push_back(sequence->owed());
    kv_promised_tokens_ += sequence->tokens.size() + 1;
  }
}

void StepComposer::look_at_waiting() {
  waiting_owed_.clear();
  waiting_.clear();
  const std::uint64_t capacity = engine_.info().kv_tokens;
  std::uint64_t promised = kv_promised_tokens_;
  const bool alone = table_.running().empty();
  if (table_.free_slots() == 0 || table_.waiting().empty()) return;
  FairQueue::Walk walk(table_.waiting());
  while (Sequence* const sequence = waiting_.size() < table_.free_slots() ? walk.next() : nullptr) {
    if (sequence->request->parked_since || waits_for_first_choice(*sequence)) continue;
    promised += sequence->tokens.size() + 1;
    // The queue's order is kept: a short request behind one that doesn't fit yet waits with it. One
    // that is alone is tried.
    if (promised > capacity && !(alone && waiting_.empty())) break;
    waiting_.push_back(sequence);
    waiting_owed_.push_back(can_copy_prompt(*sequence) ? 1 : sequence->owed());
  }
}

void StepComposer::start(Sequence& sequence) {
  const bool copy = can_copy_prompt(sequence);
  table_.start(sequence);
  if (!copy || sequence.computed > 0) return;
  const auto shared = static_cast<std::int32_t>(sequence.request->prompt_tokens) - 1;
  if (engine_.copy_prefix(*sequence.request->choices.front().slot, *sequence.slot, shared))
    sequence.computed = shared;
}

void StepComposer::add_rows(Sequence& sequence, std::int32_t tokens) {
  const bool last = tokens == sequence.owed();
  batch_.work.push_back({.slot = *sequence.slot,
                         .first_position = sequence.computed,
                         .tokens = std::span<const Token>(sequence.tokens)
                                       .subspan(static_cast<std::size_t>(sequence.computed),
                                                static_cast<std::size_t>(tokens)),
                         .sample = last,
                         .sampler = last ? sequence.sampler.get() : nullptr,
                         .may_end = may_end(sequence)});
  rows_.push_back(&sequence);
  (tokens == 1 ? decode_rows_ : prefill_rows_) += tokens;
}

}  // namespace sluice
