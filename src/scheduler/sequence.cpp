#include "scheduler/sequence.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sluice {
namespace {

std::chrono::microseconds between(std::optional<TimePoint> from,
                                  std::optional<TimePoint> to) noexcept {
  if (!from || !to || *to < *from) return std::chrono::microseconds{0};
  return std::chrono::duration_cast<std::chrono::microseconds>(*to - *from);
}

}  // namespace

Request::Request(Admission::Admitted admitted, std::uint64_t arrival_number,
                 FairQueue::Flow& its_flow)
    : id(admitted.id),
      arrival(arrival_number),
      priority(admitted.submission.priority),
      flow(&its_flow),
      prompt_tokens(static_cast<std::uint32_t>(admitted.submission.prompt.size())),
      stopping(std::move(admitted.submission.stopping)),
      caching(std::move(admitted.submission.caching)),
      deadline(admitted.submission.deadline),
      writer(std::move(admitted.writer)),
      ticket(std::move(admitted.ticket)),
      unfinished(static_cast<std::uint32_t>(admitted.submission.samplers.size())),
      admitted_at(admitted.admitted_at) {
  auto& samplers = admitted.submission.samplers;
  choices.reserve(samplers.size());
  for (std::uint32_t i = 0; i < samplers.size(); ++i) {
    const bool last = i + 1 == samplers.size();
    choices.emplace_back(*this, i,
                         last ? std::move(admitted.submission.prompt) : admitted.submission.prompt,
                         std::move(samplers[i]), stopping.stop);
  }
}

Usage Request::usage() const noexcept {
  Usage usage;
  usage.prompt_tokens = prompt_tokens;
  for (const Sequence& choice : choices) usage.completion_tokens += choice.generated;
  usage.cached_tokens = cached_tokens;
  usage.cache_write_tokens = caching.store ? prompt_tokens - cached_tokens : 0;
  usage.timings.queued = between(admitted_at, first_row_at);
  usage.timings.prefill = between(first_row_at, first_token_at);
  usage.timings.decode = between(first_token_at, last_token_at);
  usage.timings.parked = std::chrono::duration_cast<std::chrono::microseconds>(parked_for);
  usage.timings.recomputed_tokens = recomputed_tokens;
  return usage;
}

bool may_end(const Sequence& sequence) noexcept {
  const Stopping& stopping = sequence.request->stopping;
  return !stopping.ignore_eos &&
         sequence.generated >= static_cast<std::uint32_t>(stopping.min_tokens);
}

Advance advance(Sequence& sequence, Sampled& sampled, std::uint32_t context_tokens) {
  const Stopping& stopping = sequence.request->stopping;
  sequence.tokens.push_back(sampled.token);
  ++sequence.generated;
  ++sequence.untold_tokens;
  std::move(sampled.logprobs.begin(), sampled.logprobs.end(),
            std::back_inserter(sequence.untold_logprobs));

  Delta delta;
  if (sampled.kind == Sampled::Kind::kEnd) {
    delta.finish_reason = FinishReason::kStop;
  } else if (sequence.generated <= static_cast<std::uint32_t>(stopping.min_tokens)) {
    delta.bytes = sampled.piece;
  } else if (const auto match = sequence.matcher.feed(sampled.piece, delta.bytes)) {
    delta.finish_reason = FinishReason::kStop;
    delta.matched_stop = stopping.stop[*match];
  }
  const bool limit =
      stopping.max_tokens && sequence.generated >= static_cast<std::uint32_t>(*stopping.max_tokens);
  if (!delta.finish_reason && (limit || sequence.tokens.size() >= context_tokens)) {
    delta.finish_reason = FinishReason::kLength;
  }
  if (delta.finish_reason && delta.matched_stop.empty()) sequence.matcher.flush(delta.bytes);
  if (delta.bytes.empty() && !delta.finish_reason) return {};

  delta.index = sequence.index;
  delta.tokens = std::exchange(sequence.untold_tokens, 0);
  delta.logprobs = std::exchange(sequence.untold_logprobs, {});
  const bool finished = delta.finish_reason.has_value();
  return {std::move(delta), finished};
}

}  // namespace sluice
