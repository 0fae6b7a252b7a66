// Sampler: draws the next token of one choice from the model's logits, as the request's Sampling
// says. Knows no model. Order: repetition, frequency and presence penalty, logit_bias, temperature,
// min_p, top_k, top_p. The repetition penalty looks at prompt and answer, the other two at the
// answer alone (as OpenAI and vLLM have it). Logprobs are of the logits as given. Bounded: it keeps
// one entry for each different token seen, and only if a penalty is on. Thread: one at a time; the
// engine's sampling threads during a step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "contract/generation.h"
#include "engine/batch.h"
#include "engine/random.h"

namespace sluice {

// Memory for drawing, one for each sampling thread, so that nothing of the vocabulary's size is
// allocated per token.
struct SamplerScratch {
  struct Candidate {
    Token token = 0;
    float logit = 0;
    float weight = 0;
  };
  std::vector<Candidate> candidates;
  std::vector<double> block_sums;
  std::vector<float> original;
};

class Sampler final : public SamplerState {
 public:
  // The tokens of `sampling.logit_bias` are of the vocabulary.
  Sampler(const Sampling& sampling, std::uint32_t index, std::span<const Token> prompt);

  // `logits`: one for each token of the vocabulary; overwritten. `masked` tokens are never drawn.
  // Appends to `logprobs` (pieces left empty) if the request asked for them. kNoToken if no token
  // has a finite logit.
  [[nodiscard]] Token sample(std::span<float> logits, std::span<const Token> masked,
                             SamplerScratch& scratch, std::vector<TokenLogprob>& logprobs);

  static constexpr Token kNoToken = -1;

 private:
  struct Seen {
    Token token = 0;
    std::int32_t answered = 0;  // how often in the answer
  };

  void penalise(std::span<float> logits) const;
  void remember(Token token);
  [[nodiscard]] Token draw(std::span<const float> logits, float greatest, SamplerScratch& scratch);
  [[nodiscard]] Token draw_from_all(std::span<const float> logits, float greatest,
                                    SamplerScratch& scratch);

  const Sampling sampling_;
  const bool penalties_;
  Random random_;
  std::vector<Seen> seen_;  // by token
};

}  // namespace sluice
