// Batch: what one forward pass computes, and what comes out of it. Made by the scheduler for each
// step, read by an Engine. Bounded by Limits::max_step_tokens (rows) and max_sequences (work
// items). Thread: engine. Spans point into the scheduler's sequences and are valid for the step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/generation.h"

namespace sluice {

// A place in the KV cache that holds one sequence, 0 ≤ value < EngineInfo::slots.
enum class Slot : std::int32_t {};

// What an engine keeps for one choice between its steps: random numbers, token counts for
// penalties, a script's place. It outlives the loss of the choice's slot, so that recomputed
// sequences go on as they would have.
struct SamplerState {
  virtual ~SamplerState() = default;
};

// Rows of one sequence: its tokens at positions first_position … first_position + tokens.size()
// - 1. Positions 0 … first_position - 1 are in the slot's KV already.
struct Work {
  Slot slot{};
  std::int32_t first_position = 0;
  std::span<const Token> tokens;    // at least one
  bool sample = false;              // a token is wanted after the last row
  SamplerState* sampler = nullptr;  // not null where `sample`
  bool may_end = true;              // the end-of-generation token may be sampled
};

struct Batch {
  std::vector<Work> work;
};

// The token sampled for one Work with `sample`.
struct Sampled {
  enum class Kind {
    kToken,
    kEnd,      // an end-of-generation token: `piece` is empty
    kPending,  // nothing yet; the same work is wanted again (scripted engine only)
    kFailed,   // this sequence alone failed; `piece` says why
  };
  Kind kind = Kind::kToken;
  Token token = 0;
  std::string_view piece;              // exact bytes, valid until the next step
  std::vector<TokenLogprob> logprobs;  // one, if the request asked for logprobs
};

enum class StepStatus {
  kDone,
  kNoKvSpace,  // nothing was computed: the batch needs more KV than is free
  kAborted,    // should_abort said so; the rows' KV must be dropped
  kFailed,     // the engine is broken for these rows; their KV must be dropped
};

struct StepResult {
  StepStatus status = StepStatus::kDone;
  std::vector<Sampled> sampled;  // for each Work with `sample`, in the batch's order
  std::string message;           // of kFailed
};

}  // namespace sluice
