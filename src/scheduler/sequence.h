// Request and Sequence: what the engine thread keeps of an admitted request. A request has one
// sequence for each of its choices; they share its stream, its deadline and its fate. Bounded by
// Admission (waiting) and Limits::max_sequences (with a slot). Thread: engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "contract/generation.h"
#include "engine/batch.h"
#include "scheduler/admission.h"
#include "scheduler/fair_queue.h"
#include "scheduler/stop_matcher.h"
#include "stream/token_stream.h"

namespace sluice {

struct Request;

struct Sequence {
  enum class State {
    kWaiting,  // has no slot
    kRunning,  // has a slot and takes part in steps
    kParked,   // has a slot and does not, for its client does not read
    kDone,
  };

  Sequence(Request& owner, std::uint32_t choice, std::vector<Token> prompt,
           std::unique_ptr<SamplerState> sampler_state, const std::vector<std::string>& stops)
      : request(&owner),
        index(choice),
        tokens(std::move(prompt)),
        sampler(std::move(sampler_state)),
        matcher(stops) {}

  Request* request;
  std::uint32_t index;
  State state = State::kWaiting;
  std::vector<Token> tokens;  // the prompt and what was generated
  std::int32_t computed = 0;  // tokens whose KV is in the slot
  std::uint32_t generated = 0;
  std::optional<Slot> slot;
  std::uint32_t place = 0;  // in SequenceTable::running, while running
  std::unique_ptr<SamplerState> sampler;
  StopMatcher matcher;
  std::uint32_t untold_tokens = 0;            // generated, and not yet in any delta
  std::vector<TokenLogprob> untold_logprobs;  // theirs

  [[nodiscard]] std::int32_t owed() const noexcept {
    return static_cast<std::int32_t>(tokens.size()) - computed;
  }
};

struct Request {
  Request(Admission::Admitted admitted, std::uint64_t arrival_number, FairQueue::Flow& its_flow);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  RequestId id;
  std::uint64_t arrival;  // rises with each admission
  std::int32_t priority;
  FairQueue::Flow* flow;  // until it is retired
  std::uint32_t prompt_tokens;
  Stopping stopping;
  Caching caching;
  TimePoint deadline;
  StreamWriter writer;
  Admission::Ticket ticket;  // given back when no choice waits for its first slot any more
  std::vector<Sequence> choices;
  std::uint32_t unfinished;

  TimePoint admitted_at;
  std::optional<TimePoint> first_row_at;
  std::optional<TimePoint> first_token_at;
  TimePoint last_token_at{};  // or when it was resumed after that
  std::optional<TimePoint> parked_since;
  Duration parked_for{};
  std::uint32_t recomputed_tokens = 0;
  std::uint32_t cached_tokens = 0;  // of the prompt: their KV was found

  [[nodiscard]] bool dead(TimePoint now) const noexcept {
    return writer.reader_gone() || now >= deadline;
  }
  [[nodiscard]] Usage usage() const noexcept;
};

// What a sampled token adds to a sequence's text: the delta to push, if there is anything to tell,
// and whether the choice is over.
struct Advance {
  std::optional<Delta> delta;
  bool finished = false;
};

// `sampled` is a token or an end. `context_tokens`: at this length the choice ends with kLength.
[[nodiscard]] Advance advance(Sequence& sequence, Sampled& sampled, std::uint32_t context_tokens);

// Whether an end-of-generation token may be sampled next.
[[nodiscard]] bool may_end(const Sequence& sequence) noexcept;

}  // namespace sluice
