#include "engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace sluice {
namespace {

// One draw from a copy of the logits.
class Drawer {
 public:
  explicit Drawer(const Sampling& sampling, std::uint32_t index = 0,
                  const std::vector<Token>& prompt = {})
      : sampler_(sampling, index, prompt) {}

  Token draw(std::vector<float> logits, const std::vector<Token>& masked = {}) {
    logprobs.clear();
    return sampler_.sample(logits, masked, scratch_, logprobs);
  }

  std::vector<Token> draws(const std::vector<float>& logits, int count) {
    std::vector<Token> tokens;
    for (int i = 0; i < count; ++i) tokens.push_back(draw(logits));
    return tokens;
  }

  std::vector<TokenLogprob> logprobs;

 private:
  Sampler sampler_;
  SamplerScratch scratch_;
};

Sampling greedy() {
  Sampling sampling;
  sampling.temperature = 0;
  return sampling;
}

Sampling seeded(std::uint64_t seed = 1) {
  Sampling sampling;
  sampling.seed = seed;
  return sampling;
}

std::vector<float> hill(std::size_t size, std::size_t top) {
  std::vector<float> logits;
  for (std::size_t i = 0; i < size; ++i) {
    logits.push_back(-0.01F * std::abs(static_cast<float>(i) - static_cast<float>(top)));
  }
  return logits;
}

std::map<Token, double> shares(const std::vector<Token>& tokens) {
  std::map<Token, double> result;
  for (const Token token : tokens) result[token] += 1.0 / static_cast<double>(tokens.size());
  return result;
}

TEST(Sampler, GreedyTakesTheLikeliestWhereverItStands) {
  for (const std::size_t size : {1U, 15U, 16U, 17U, 1000U}) {
    for (const std::size_t top : {std::size_t{0}, size / 2, size - 1}) {
      EXPECT_EQ(Drawer(greedy()).draw(hill(size, top)), static_cast<Token>(top)) << size;
    }
  }
}

TEST(Sampler, GreedyTakesTheFirstOfEquals) { EXPECT_EQ(Drawer(greedy()).draw({1, 5, 5, 2}), 1); }

TEST(Sampler, NeverDrawsAMaskedToken) {
  EXPECT_EQ(Drawer(greedy()).draw({1, 9, 5, 2}, {1}), 2);
  Drawer drawer(seeded());
  for (int i = 0; i < 200; ++i) EXPECT_NE(drawer.draw({1, 9, 5, 2}, {1}), 1);
}

TEST(Sampler, ReportsThatNoTokenCanBeDrawn) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Drawer(greedy()).draw({nan, nan}), Sampler::kNoToken);
  EXPECT_EQ(Drawer(seeded()).draw({nan, nan}), Sampler::kNoToken);
  EXPECT_EQ(Drawer(seeded()).draw({1, 2}, {0, 1}), Sampler::kNoToken);
}

TEST(Sampler, DrawsInProportionToTheProbabilities) {
  std::vector<float> logits(700, -50.0F);
  logits[3] = std::log(0.5F);
  logits[300] = std::log(0.3F);
  logits[699] = std::log(0.2F);
  const std::map<Token, double> seen = shares(Drawer(seeded()).draws(logits, 20'000));
  EXPECT_NEAR(seen.at(3), 0.5, 0.02);
  EXPECT_NEAR(seen.at(300), 0.3, 0.02);
  EXPECT_NEAR(seen.at(699), 0.2, 0.02);
  EXPECT_EQ(seen.size(), 3U);
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  const std::vector<float> logits{0, 1};
  Sampling sampling = seeded();
  sampling.temperature = 0.5F;
  EXPECT_NEAR(shares(Drawer(sampling).draws(logits, 20'000)).at(1), 1 / (1 + std::exp(-2.0)), 0.02);
  sampling.temperature = 2;
  EXPECT_NEAR(shares(Drawer(sampling).draws(logits, 20'000)).at(1), 1 / (1 + std::exp(-0.5)), 0.02);
}

TEST(Sampler, OneSeedGivesOneSequence) {
  const std::vector<float> logits = hill(1000, 400);
  EXPECT_EQ(Drawer(seeded(7)).draws(logits, 50), Drawer(seeded(7)).draws(logits, 50));
}

TEST(Sampler, OtherSeedsOtherChoicesAndNoSeedGiveOtherSequences) {
  const std::vector<float> logits = hill(1000, 400);
  std::set<std::vector<Token>> sequences;
  for (const std::uint64_t seed : {7U, 8U, 9U}) {
    for (const std::uint32_t index : {0U, 1U, 2U})
      sequences.insert(Drawer(seeded(seed), index).draws(logits, 50));
  }
  sequences.insert(Drawer(Sampling{}).draws(logits, 50));
  sequences.insert(Drawer(Sampling{}).draws(logits, 50));
  EXPECT_EQ(sequences.size(), 11U);
}

TEST(Sampler, TopKDrawsFromTheKLikeliestOnly) {
  Sampling sampling = seeded();
  sampling.top_k = 3;
  EXPECT_THAT(
      shares(Drawer(sampling).draws(hill(1000, 400), 500)),
      testing::UnorderedElementsAre(testing::Key(399), testing::Key(400), testing::Key(401)));
}

TEST(Sampler, TopKBeyondTheVocabularyIsAll) {
  Sampling sampling = seeded();
  sampling.top_k = 1000;
  EXPECT_EQ(shares(Drawer(sampling).draws({0, 0, 0}, 500)).size(), 3U);
}

TEST(Sampler, TopPDrawsFromTheSmallestSetThatReachesIt) {
  const std::vector<float> logits{std::log(0.4F), std::log(0.1F), std::log(0.3F), std::log(0.2F)};
  Sampling sampling = seeded();
  const auto drawn = [&](float top_p) {
    sampling.top_p = top_p;
    return shares(Drawer(sampling).draws(logits, 2000)).size();
  };
  EXPECT_EQ(drawn(0.01F), 1U);
  EXPECT_EQ(drawn(0.39F), 1U);
  EXPECT_EQ(drawn(0.69F), 2U);
  EXPECT_EQ(drawn(0.89F), 3U);
  EXPECT_EQ(drawn(0.95F), 4U);
}

TEST(Sampler, TopPReachesFarIntoAFlatDistribution) {
  Sampling sampling = seeded();
  sampling.top_p = 0.9F;
  Drawer drawer(sampling);
  std::set<Token> seen;
  for (const Token token : drawer.draws(hill(20'000, 10'000), 5000)) seen.insert(token);
  EXPECT_GT(seen.size(), 300U);
  for (const Token token : seen) EXPECT_NEAR(token, 10'000, 240);  // 0.9 = 1 - e^(-0.01 x)
}

TEST(Sampler, MinPDrawsFromTokensThatLikelyOnly) {
  Sampling sampling = seeded();
  sampling.min_p = 0.5F;
  EXPECT_THAT(shares(Drawer(sampling).draws({0, std::log(0.6F), std::log(0.4F)}, 2000)),
              testing::UnorderedElementsAre(testing::Key(0), testing::Key(1)));
}

TEST(Sampler, LogitBiasForcesAndForbids) {
  Sampling sampling = greedy();
  sampling.logit_bias = {{2, 100.0F}};
  EXPECT_EQ(Drawer(sampling).draw({5, 4, 1}), 2);
  sampling.logit_bias = {{0, -100.0F}};
  EXPECT_EQ(Drawer(sampling).draw({5, 4, 1}), 1);
}

TEST(Sampler, RepetitionPenaltyCountsPromptAndAnswer) {
  Sampling sampling = greedy();
  sampling.repetition_penalty = 2;
  Drawer drawer(sampling, 0, {1, 1});
  const std::vector<float> logits{3, 4, 2.5F, -9};
  EXPECT_EQ(drawer.draw(logits), 0);  // 1 was in the prompt: 4 / 2
  EXPECT_EQ(drawer.draw(logits), 2);  // 0 is in the answer now: 3 / 2
}

TEST(Sampler, RepetitionPenaltyMakesNegativeLogitsSmaller) {
  Sampling sampling = greedy();
  sampling.repetition_penalty = 2;
  EXPECT_EQ(Drawer(sampling, 0, {0}).draw({-1, -1.5F}), 1);
}

// The ends of every range that validate() allows.
TEST(Sampler, TheContractsExtremesDrawAToken) {
  const std::vector<float> logits{60, -60, 0, 30};
  for (const float penalty : {0.01F, 10.0F}) {
    for (const float temperature : {0.0F, 1e-45F, 1e-4F, 2.0F}) {
      for (const float smallest : {0.0F, 1e-45F, 1.0F}) {
        Sampling sampling = seeded();
        sampling.temperature = temperature;
        sampling.min_p = smallest;
        sampling.top_p = std::max(smallest, 1e-45F);
        sampling.repetition_penalty = penalty;
        sampling.frequency_penalty = sampling.presence_penalty = penalty < 1 ? -2 : 2;
        Drawer drawer(sampling, 0, {0, 1, 2, 3});
        for (int i = 0; i < 100; ++i) EXPECT_NE(drawer.draw(logits), Sampler::kNoToken);
      }
    }
  }
}

TEST(Sampler, FrequencyAndPresencePenaltyCountTheAnswerAlone) {
  Sampling frequency = greedy();
  frequency.frequency_penalty = 1;
  Drawer by_frequency(frequency, 0, {0, 0, 0, 0, 0});
  EXPECT_EQ(by_frequency.draws({5, 3.5F}, 4), (std::vector<Token>{0, 0, 1, 0}));

  Sampling presence = greedy();
  presence.presence_penalty = 1;
  Drawer by_presence(presence, 0, {0});
  EXPECT_EQ(by_presence.draws({5, 3.5F}, 4), (std::vector<Token>{0, 0, 0, 0}));
  EXPECT_EQ(by_presence.draw({5, 4.5F}), 1);
}

TEST(Sampler, LogprobsAreTheModelsOwnBeforeEveryOption) {
  Sampling sampling = greedy();
  sampling.logit_bias = {{1, 100.0F}};
  sampling.repetition_penalty = 5;
  sampling.top_logprobs = 2;
  Drawer drawer(sampling, 0, {0});
  EXPECT_EQ(drawer.draw({std::log(0.7F), std::log(0.1F), std::log(0.2F)}, {2}), 1);
  ASSERT_EQ(drawer.logprobs.size(), 1U);
  EXPECT_EQ(drawer.logprobs[0].chosen.token, 1);
  EXPECT_NEAR(drawer.logprobs[0].chosen.logprob, std::log(0.1), 1e-5);
  ASSERT_EQ(drawer.logprobs[0].top.size(), 2U);
  EXPECT_EQ(drawer.logprobs[0].top[0].token, 0);
  EXPECT_NEAR(drawer.logprobs[0].top[0].logprob, std::log(0.7), 1e-5);
  EXPECT_EQ(drawer.logprobs[0].top[1].token, 2);
  EXPECT_NEAR(drawer.logprobs[0].top[1].logprob, std::log(0.2), 1e-5);
}

TEST(Sampler, ZeroTopLogprobsGivesThatOfTheChosenAlone) {
  Sampling sampling = greedy();
  sampling.top_logprobs = 0;
  Drawer drawer(sampling);
  EXPECT_EQ(drawer.draw({1, 2}), 1);
  ASSERT_EQ(drawer.logprobs.size(), 1U);
  EXPECT_TRUE(drawer.logprobs[0].top.empty());
}

}  // namespace
}  // namespace sluice
