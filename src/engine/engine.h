// Engine: one model that does one forward pass at a time. llama_engine.h is the real one,
// scripted_engine.h needs no model. Bounded by EngineInfo: slots, KV tokens, context of one
// sequence. Thread: each function says. `any` functions may run beside a step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "contract/generation.h"
#include "engine/batch.h"

namespace sluice {

struct EngineInfo {
  std::string kind;                  // "llama" or "scripted"
  std::string model;                 // the model's own name
  std::string weights;               // the type they are kept in, as "Q8_0"; empty: none
  std::uint32_t context_tokens = 0;  // of one sequence, prompt and answer together
  std::uint32_t vocabulary = 0;
  std::uint32_t embedding_size = 0;  // 0: no embeddings
  std::uint32_t slots = 0;
  std::uint64_t kv_tokens = 0;  // capacity of all slots together
  std::uint32_t longest_piece =
      1;  // bytes of the longest token: a text of b bytes has at least b / longest_piece tokens
  bool has_chat_template = false;
  bool keeps_prefixes = false;  // keep_prefix and copy_prefix are worth trying on ended sequences
  // Prefill rows that a step may hold when nothing decodes: more than this buys no speed.
  std::uint32_t best_prefill_tokens = 512;
};

// Asked often during a forward pass; true ends it early. Must be cheap and must not block or throw.
using AbortCheck = std::function<bool()>;

class Engine {
 public:
  virtual ~Engine() = default;

  // Thread: any.
  [[nodiscard]] virtual const EngineInfo& info() const noexcept = 0;

  // Renders and tokenises. Text of the source is never tokenised as structure. At least one token.
  // Errors: kInvalidArgument (template refuses the roles' order, content that the model can't use).
  // Thread: any. Never on the engine thread: it may take as long as the text is long.
  [[nodiscard]] virtual Result<std::vector<Token>> tokenize(const PromptSource& source) const = 0;

  // State for choice `index` of a request; seeds differ by index. `prompt` feeds the repetition
  // penalty. Thread: any.
  [[nodiscard]] virtual std::unique_ptr<SamplerState> make_sampler(
      const Sampling& sampling, std::uint32_t index, const std::vector<Token>& prompt) const = 0;

  // One forward pass over the batch, and sampling. `result` is reused between steps: its vectors
  // keep their capacity. After kNoKvSpace the KV is as it was. Thread: engine.
  virtual void step(const Batch& batch, const AbortCheck& abort, StepResult& result) = 0;

  // Forgets the KV of a slot. Thread: engine.
  virtual void release(Slot slot) = 0;

  // Makes positions 0 … tokens - 1 of `from` those of `to`, which must be empty. False: can't;
  // nothing changed. Thread: engine.
  [[nodiscard]] virtual bool copy_prefix(Slot from, Slot to, std::int32_t tokens) = 0;

  // Forgets all of a slot's KV but that of positions 0 … tokens - 1. False: can't; what is there is
  // of no use any more. Thread: engine.
  [[nodiscard]] virtual bool keep_prefix(Slot slot, std::int32_t tokens) = 0;

  // One vector, of length 1, for one tokenised text of at most context_tokens. Errors:
  // kUnimplemented, kCancelled (aborted), kInternal. Thread: any one at a time, also beside a step.
  [[nodiscard]] virtual Result<std::vector<float>> embed(const std::vector<Token>& tokens,
                                                         const AbortCheck& abort) = 0;
};

}  // namespace sluice
