// LlamaEmbedder: a text's vector, by a context of its own beside the one that generates: the mean
// of the last layer's rows over all tokens, scaled to length 1. Bounded by one text at a time of at
// most the context's tokens. Its memory is taken at the first call: many servers never embed.
// Thread: any one at a time, also beside a step of the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "contract/generation.h"
#include "engine/engine.h"
#include "engine/llama_context.h"
#include "engine/llama_model.h"

namespace sluice {

class LlamaEmbedder {
 public:
  // `model` outlives it.
  LlamaEmbedder(const LlamaModel& model, std::uint32_t context_tokens) noexcept
      : model_(model), context_tokens_(context_tokens) {}

  // As Engine::embed.
  [[nodiscard]] Result<std::vector<float>> embed(const std::vector<Token>& tokens,
                                                 const AbortCheck& abort);

 private:
  [[nodiscard]] Result<void> start();

  const LlamaModel& model_;
  const std::uint32_t context_tokens_;
  std::unique_ptr<LlamaContext> context_;
};

}  // namespace sluice
