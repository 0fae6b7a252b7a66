#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "engine/exponential.h"

namespace sluice {
namespace {

using Candidate = SamplerScratch::Candidate;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kGreedyBelow = 1e-4F;  // temperature

// A token this far below the likeliest (in logits at temperature 1) has a probability under 2^-53:
// no draw can reach it.
constexpr float kNegligible = 37.0F;

bool likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// Greatest of the logits; NaN is passed over. Lanes, so that the compiler may use vectors without
// reordering a sum.
float greatest_of(std::span<const float> logits) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> lanes;
  lanes.fill(kMinusInfinity);
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = logits[i + lane] > lanes[lane] ? logits[i + lane] : lanes[lane];
    }
  }
  float greatest = kMinusInfinity;
  for (; i < logits.size(); ++i) greatest = logits[i] > greatest ? logits[i] : greatest;
  for (const float lane : lanes) greatest = std::max(greatest, lane);
  return greatest;
}

Token first_with(std::span<const float> logits, float value) {
  return static_cast<Token>(std::find(logits.begin(), logits.end(), value) - logits.begin());
}

constexpr std::size_t kBlock = 256;

// Sum of exp((logit - greatest) / temperature). At most kBlock logits: float lanes stay exact
// enough.
double block_sum(std::span<const float> logits, float greatest, float temperature) {
  constexpr std::size_t kLanes = 16;
  const float scale = 1.0F / temperature;
  std::array<float, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += exp_of_nonpositive((logits[i + lane] - greatest) * scale);
    }
  }
  double sum = 0;
  for (; i < logits.size(); ++i) sum += exp_of_nonpositive((logits[i] - greatest) * scale);
  for (const float lane : lanes) sum += lane;
  return sum;
}

std::span<const float> block_at(std::span<const float> logits, std::size_t begin) {
  return logits.subspan(begin, std::min(kBlock, logits.size() - begin));
}

double partition_sum(std::span<const float> logits, float greatest, float temperature) {
  double sum = 0;
  for (std::size_t begin = 0; begin < logits.size(); begin += kBlock) {
    sum += block_sum(block_at(logits, begin), greatest, temperature);
  }
  return sum;
}

void collect_from(std::span<const float> logits, float floor, std::vector<Candidate>& out) {
  out.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] >= floor) out.push_back({static_cast<Token>(i), logits[i], 0});
  }
}

// The `count` likeliest that are not below `floor`, likeliest first.
void collect_top(std::span<const float> logits, std::size_t count, float floor,
                 std::vector<Candidate>& out) {
  out.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] >= floor)) continue;
    const Candidate candidate{static_cast<Token>(i), logits[i], 0};
    if (out.size() < count) {
      out.push_back(candidate);
      std::push_heap(out.begin(), out.end(), likelier);
      if (out.size() == count) floor = out.front().logit;
    } else if (likelier(candidate, out.front())) {
      std::pop_heap(out.begin(), out.end(), likelier);
      out.back() = candidate;
      std::push_heap(out.begin(), out.end(), likelier);
      floor = out.front().logit;
    }
  }
  std::sort_heap(out.begin(), out.end(), likelier);
}

// Sets the candidates' weights and returns their sum.
double weigh(std::vector<Candidate>& candidates, float greatest, float temperature) {
  double sum = 0;
  for (Candidate& candidate : candidates) {
    candidate.weight = exp_of_nonpositive((candidate.logit - greatest) / temperature);
    sum += candidate.weight;
  }
  return sum;
}

// Keeps the likeliest candidates that together reach `mass`, likeliest first; returns their sum.
double keep_nucleus(std::vector<Candidate>& candidates, double mass) {
  const auto less_likely = [](const Candidate& a, const Candidate& b) { return likelier(b, a); };
  std::make_heap(candidates.begin(), candidates.end(), less_likely);
  auto heap_end = candidates.end();
  double sum = 0;
  while (heap_end != candidates.begin() && (sum < mass || heap_end == candidates.end())) {
    std::pop_heap(candidates.begin(), heap_end, less_likely);
    --heap_end;
    sum += heap_end->weight;
  }
  candidates.erase(candidates.begin(), heap_end);
  std::reverse(candidates.begin(), candidates.end());
  return sum;
}

Token pick(const std::vector<Candidate>& candidates, double target) {
  for (const Candidate& candidate : candidates) {
    target -= candidate.weight;
    if (target < 0) return candidate.token;
  }
  return candidates.back().token;
}

std::uint64_t seed_of(const Sampling& sampling, std::uint32_t index) {
  if (!sampling.seed) {
    std::random_device device;
    return (std::uint64_t{device()} << 32U) | device();
  }
  // Mixed first, so that choice 1 of seed 7 isn't choice 0 of seed 8.
  return Random(*sampling.seed).next() + index;
}

TokenLogprob logprobs_of(std::span<const float> logits, Token chosen, std::size_t top,
                         SamplerScratch& scratch) {
  const float greatest = greatest_of(logits);
  const double log_sum = greatest + std::log(partition_sum(logits, greatest, 1.0F));
  const auto logprob = [&](float logit) { return static_cast<float>(logit - log_sum); };
  TokenLogprob result;
  result.chosen = {chosen, logprob(logits[static_cast<std::size_t>(chosen)]), {}};
  if (top == 0) return result;
  collect_top(logits, top, kMinusInfinity, scratch.candidates);
  result.top.reserve(top);
  for (const Candidate& candidate : scratch.candidates) {
    result.top.push_back({candidate.token, logprob(candidate.logit), {}});
  }
  return result;
}

}  // namespace

Sampler::Sampler(const Sampling& sampling, std::uint32_t index, std::span<const Token> prompt)
    : sampling_(sampling),
      penalties_(sampling.repetition_penalty != 1.0F || sampling.frequency_penalty != 0.0F ||
                 sampling.presence_penalty != 0.0F),
      random_(seed_of(sampling, index)) {
  if (sampling.repetition_penalty == 1.0F) return;
  std::vector<Token> tokens(prompt.begin(), prompt.end());
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  seen_.reserve(tokens.size());
  for (const Token token : tokens) seen_.push_back({token, 0});
}

Token Sampler::sample(std::span<float> logits, std::span<const Token> masked,
                      SamplerScratch& scratch, std::vector<TokenLogprob>& logprobs) {
  if (sampling_.top_logprobs) scratch.original.assign(logits.begin(), logits.end());
  if (penalties_) penalise(logits);
  for (const auto& [token, bias] : sampling_.logit_bias)
    logits[static_cast<std::size_t>(token)] += bias;
  for (const Token token : masked) logits[static_cast<std::size_t>(token)] = kMinusInfinity;

  const float greatest = greatest_of(logits);
  if (!std::isfinite(greatest)) return kNoToken;
  const Token token = sampling_.temperature < kGreedyBelow ? first_with(logits, greatest)
                                                           : draw(logits, greatest, scratch);
  if (penalties_) remember(token);
  if (sampling_.top_logprobs) {
    logprobs.push_back(logprobs_of(scratch.original, token,
                                   static_cast<std::size_t>(*sampling_.top_logprobs), scratch));
  }
  return token;
}

void Sampler::penalise(std::span<float> logits) const {
  for (const Seen& seen : seen_) {
    float& logit = logits[static_cast<std::size_t>(seen.token)];
    logit = logit > 0 ? logit / sampling_.repetition_penalty : logit * sampling_.repetition_penalty;
    if (seen.answered > 0) {
      logit -= sampling_.presence_penalty +
               sampling_.frequency_penalty * static_cast<float>(seen.answered);
    }
  }
}

void Sampler::remember(Token token) {
  const auto place =
      std::lower_bound(seen_.begin(), seen_.end(), token,
                       [](const Seen& seen, Token wanted) { return seen.token < wanted; });
  if (place != seen_.end() && place->token == token) {
    ++place->answered;
  } else {
    seen_.insert(place, {token, 1});
  }
}

Token Sampler::draw(std::span<const float> logits, float greatest, SamplerScratch& scratch) {
  const float temperature = sampling_.temperature;
  const bool nucleus = sampling_.top_p < 1.0F;
  float floor = greatest - kNegligible * temperature;
  if (sampling_.min_p > 0)
    floor = std::max(floor, greatest + std::log(sampling_.min_p) * temperature);

  auto& candidates = scratch.candidates;
  double sum = 0;
  if (sampling_.top_k > 0) {
    collect_top(logits, static_cast<std::size_t>(sampling_.top_k), floor, candidates);
    sum = weigh(candidates, greatest, temperature);
    if (nucleus) sum = keep_nucleus(candidates, sampling_.top_p * sum);
  } else if (sampling_.min_p > 0) {
    collect_from(logits, floor, candidates);
    sum = weigh(candidates, greatest, temperature);
    if (nucleus) sum = keep_nucleus(candidates, sampling_.top_p * sum);
  } else if (nucleus) {
    // Most often a few tokens reach top_p, so look at the likeliest first and widen until they do.
    const double mass = sampling_.top_p * partition_sum(logits, greatest, temperature);
    for (const float reach : {4.0F, 8.0F, 16.0F, kNegligible}) {
      collect_from(logits, greatest - reach * temperature, candidates);
      sum = weigh(candidates, greatest, temperature);
      if (sum >= mass) break;
    }
    sum = keep_nucleus(candidates, mass);
  } else {
    return draw_from_all(logits, greatest, scratch);
  }
  return pick(candidates, random_.uniform() * sum);
}

// Over the whole vocabulary: first the block that the draw falls into, then the token in it.
Token Sampler::draw_from_all(std::span<const float> logits, float greatest,
                             SamplerScratch& scratch) {
  const float temperature = sampling_.temperature;
  auto& blocks = scratch.block_sums;
  blocks.clear();
  double sum = 0;
  for (std::size_t begin = 0; begin < logits.size(); begin += kBlock) {
    blocks.push_back(block_sum(block_at(logits, begin), greatest, temperature));
    sum += blocks.back();
  }
  double target = random_.uniform() * sum;
  std::size_t block = 0;
  for (; block + 1 < blocks.size() && target >= blocks[block]; ++block) target -= blocks[block];

  // Rounding may leave the target just past the block's end; then the likeliest token of it, at the
  // worst of all, is as good.
  collect_from(block_at(logits, block * kBlock), greatest - kNegligible * temperature,
               scratch.candidates);
  if (scratch.candidates.empty()) return first_with(logits, greatest);
  weigh(scratch.candidates, greatest, temperature);
  return static_cast<Token>(block * kBlock) + pick(scratch.candidates, target);
}

}  // namespace sluice
