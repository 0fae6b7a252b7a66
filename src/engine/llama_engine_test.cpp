#include "engine/llama_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "engine/test_model.h"

namespace sluice {
namespace {

using testing::HasSubstr;

Sampling greedy() {
  Sampling sampling;
  sampling.temperature = 0;
  return sampling;
}

PromptSource question(const std::string& text) {
  PromptSource source;
  source.messages.push_back({Role::kUser, {{text, ""}}});
  return source;
}

// Questions that even a small model answers.
constexpr const char* kFrance = "Name the capital city of France.";
constexpr const char* kJapan = "Name the capital city of Japan.";

// One sequence, as a scheduler would drive it.
class Generation {
 public:
  Generation(const Engine& engine, std::int32_t slot, const PromptSource& source,
             const Sampling& sampling = greedy())
      : slot_(Slot{slot}),
        tokens_(*engine.tokenize(source)),
        sampler_(engine.make_sampler(sampling, 0, tokens_)) {}

  // All that is not in the KV yet.
  [[nodiscard]] Work work(bool may_end = true) const {
    const std::span<const Token> rest = std::span(tokens_).subspan(computed_);
    return {slot_, static_cast<std::int32_t>(computed_), rest, true, sampler_.get(), may_end};
  }

  void take(const Sampled& sampled) {
    ended_ = ended_ || sampled.kind != Sampled::Kind::kToken;
    computed_ = tokens_.size();
    tokens_.push_back(sampled.token);
    answer_tokens_.push_back(sampled.token);
    answer_ += sampled.piece;
    if (!sampled.logprobs.empty()) logprobs_.push_back(sampled.logprobs.front());
  }

  // The KV is gone; the next work brings all of it again.
  void forget() { computed_ = 0; }
  void has(std::size_t computed) { computed_ = computed; }

  [[nodiscard]] Slot slot() const { return slot_; }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] const std::string& answer() const { return answer_; }
  [[nodiscard]] const std::vector<Token>& answer_tokens() const { return answer_tokens_; }
  [[nodiscard]] const std::vector<Token>& tokens() const { return tokens_; }
  [[nodiscard]] const std::vector<TokenLogprob>& logprobs() const { return logprobs_; }

 private:
  const Slot slot_;
  std::vector<Token> tokens_;
  std::unique_ptr<SamplerState> sampler_;
  std::size_t computed_ = 0;
  bool ended_ = false;
  std::string answer_;
  std::vector<Token> answer_tokens_;
  std::vector<TokenLogprob> logprobs_;
};

bool never() { return false; }

// One step of those that have not ended; kDone is expected.
void step(Engine& engine, std::vector<Generation*> running, bool may_end = true) {
  std::erase_if(running, [](const Generation* generation) { return generation->ended(); });
  if (running.empty()) return;
  Batch batch;
  for (const Generation* generation : running) batch.work.push_back(generation->work(may_end));
  StepResult result;
  engine.step(batch, never, result);
  ASSERT_EQ(result.status, StepStatus::kDone) << result.message;
  ASSERT_EQ(result.sampled.size(), running.size());
  for (std::size_t i = 0; i < running.size(); ++i) running[i]->take(result.sampled[i]);
}

void generate(Engine& engine, Generation& generation, int tokens, bool may_end = true) {
  for (int i = 0; i < tokens; ++i) step(engine, {&generation}, may_end);
}

Result<std::unique_ptr<Engine>> make_engine(bool unified, std::uint32_t slots,
                                            std::uint32_t context) {
  LlamaOptions options;
  options.model_path = test_model_path();
  options.slots = slots;
  options.context_tokens = context;
  options.unified_kv = unified;
  options.threads = 1;  // the kernels' own threads spin, which a busy machine makes very slow
  return make_llama_engine(options);
}

constexpr std::uint32_t kSlots = 32;
constexpr std::uint32_t kContext = 512;

class LlamaEngineTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (test_model_path().empty()) return;
    Result<std::unique_ptr<Engine>> made = make_engine(false, kSlots, kContext);
    ASSERT_TRUE(made) << made.error().message;
    shared_ = std::move(*made);
  }
  static void TearDownTestSuite() { shared_.reset(); }

  void SetUp() override {
    if (shared_ == nullptr) GTEST_SKIP() << "SLUICE_MODEL is not set";
  }
  void TearDown() override {
    if (shared_ == nullptr) return;
    for (std::int32_t slot = 0; slot < static_cast<std::int32_t>(kSlots); ++slot)
      shared_->release(Slot{slot});
  }

  static Engine& engine() { return *shared_; }

 private:
  inline static std::unique_ptr<Engine> shared_;
};

TEST_F(LlamaEngineTest, SaysWhatItIs) {
  const EngineInfo& info = engine().info();
  EXPECT_EQ(info.kind, "llama");
  EXPECT_EQ(info.slots, kSlots);
  EXPECT_EQ(info.context_tokens, kContext);
  EXPECT_EQ(info.kv_tokens, std::uint64_t{kSlots} * kContext);
  EXPECT_GT(info.vocabulary, 1000U);
  EXPECT_GT(info.embedding_size, 0U);
  EXPECT_TRUE(info.has_chat_template);
}

TEST_F(LlamaEngineTest, AnswersAQuestion) {
  Generation generation(engine(), 0, question(kFrance));
  generate(engine(), generation, 24);
  EXPECT_THAT(generation.answer(), HasSubstr("Paris"));
}

TEST_F(LlamaEngineTest, ChunkedPrefillGivesTheSameToken) {
  Generation whole(engine(), 0, question("Name three colours of the rainbow."));
  Generation chunked(engine(), 1, question("Name three colours of the rainbow."));
  step(engine(), {&whole});
  StepResult result;
  for (std::size_t i = 0; i + 1 < chunked.tokens().size(); ++i) {
    const Work row{chunked.slot(),
                   static_cast<std::int32_t>(i),
                   std::span(chunked.tokens()).subspan(i, 1),
                   false,
                   nullptr,
                   true};
    engine().step({{row}}, never, result);
    ASSERT_EQ(result.status, StepStatus::kDone);
    EXPECT_TRUE(result.sampled.empty());
  }
  chunked.has(chunked.tokens().size() - 1);
  step(engine(), {&chunked});
  EXPECT_EQ(chunked.answer_tokens(), whole.answer_tokens());
}

// How much likelier the first token is than the second where two answers part.
float gap_where_they_part(const Generation& a, const Generation& b) {
  for (std::size_t i = 0; i < std::min(a.answer_tokens().size(), b.answer_tokens().size()); ++i) {
    if (a.answer_tokens()[i] == b.answer_tokens()[i]) continue;
    return std::min(a.logprobs()[i].top[0].logprob - a.logprobs()[i].top[1].logprob,
                    b.logprobs()[i].top[0].logprob - b.logprobs()[i].top[1].logprob);
  }
  return 0;
}

TEST_F(LlamaEngineTest, ManyAtOnceAnswerAsEachDoesAlone) {
  const std::vector<std::string> countries{"France", "Italy", "Spain", "Japan",
                                           "Egypt",  "Peru",  "Kenya", "Norway"};
  Sampling sampling = greedy();
  sampling.top_logprobs = 2;
  std::vector<std::unique_ptr<Generation>> alone;
  std::vector<std::unique_ptr<Generation>> together;
  for (std::int32_t slot = 0; slot < static_cast<std::int32_t>(kSlots); ++slot) {
    const std::string text =
        "Name the capital city of " + countries[static_cast<std::size_t>(slot) % 8] + ".";
    together.push_back(std::make_unique<Generation>(engine(), slot, question(text), sampling));
    if (slot < 8) {
      alone.push_back(std::make_unique<Generation>(engine(), 0, question(text), sampling));
      generate(engine(), *alone.back(), 12);
      engine().release(Slot{0});
    }
  }
  std::vector<Generation*> running;
  for (const auto& generation : together) running.push_back(generation.get());
  for (auto first = running.begin(); first != running.end(); first += 8)
    step(engine(), {first, first + 8});
  for (int i = 1; i < 12; ++i) step(engine(), running);
  constexpr float kFloatingPoint = 0.1F;  // two tokens this near are a toss-up between kernels
  for (std::size_t i = 0; i < together.size(); ++i) {
    EXPECT_LT(gap_where_they_part(*together[i], *alone[i % 8]), kFloatingPoint)
        << together[i]->answer() << " / " << alone[i % 8]->answer();
  }
}

TEST_F(LlamaEngineTest, ResultsComeInTheBatchsOrder) {
  Generation first(engine(), 2, question(kJapan));
  step(engine(), {&first});
  Generation second(engine(), 5, question(kFrance));
  for (int i = 0; i < 16; ++i) step(engine(), {&second, &first});
  EXPECT_THAT(second.answer(), HasSubstr("Paris"));
  EXPECT_THAT(first.answer(), HasSubstr("Tokyo"));
}

TEST_F(LlamaEngineTest, DecodesBesideAPrefill) {
  Generation talking(engine(), 0, question(kFrance));
  step(engine(), {&talking});
  Generation arriving(
      engine(), 7,
      question("Tell me about Japan. " + std::string(400, 'x') + " What is its capital?"));
  step(engine(), {&arriving, &talking});
  for (int i = 0; i < 16; ++i) step(engine(), {&talking, &arriving});
  EXPECT_THAT(talking.answer(), HasSubstr("Paris"));
}

TEST_F(LlamaEngineTest, AnAbortEndsTheStep) {
  Generation generation(engine(), 0, question(std::string(400, 'x')));
  StepResult result;
  int asked = 0;
  engine().step(
      {{generation.work()}}, [&] { return ++asked == 3; }, result);
  EXPECT_EQ(result.status, StepStatus::kAborted);
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(result.sampled.empty());
  engine().release(generation.slot());
  Generation next(engine(), 0, question(kFrance));
  generate(engine(), next, 16);
  EXPECT_THAT(next.answer(), HasSubstr("Paris"));
}

TEST_F(LlamaEngineTest, SequencesGoOnWhenOthersBetweenThemEnd) {
  std::vector<std::unique_ptr<Generation>> all;
  std::vector<Generation*> running;
  for (std::int32_t slot = 0; slot < 6; ++slot) {
    all.push_back(
        std::make_unique<Generation>(engine(), slot, question(slot % 2 == 0 ? kFrance : kJapan)));
    running.push_back(all.back().get());
  }
  for (int i = 0; i < 3; ++i) step(engine(), running);
  for (const std::size_t ended : {4U, 1U, 0U}) {
    engine().release(running[ended]->slot());
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(ended));
    step(engine(), running);
  }
  for (int i = 0; i < 8; ++i) step(engine(), running);
  ASSERT_EQ(running.size(), 3U);
  EXPECT_THAT(running[0]->answer(), HasSubstr("Paris"));
  EXPECT_THAT(running[1]->answer(), HasSubstr("Tokyo"));
  EXPECT_THAT(running[2]->answer(), HasSubstr("Tokyo"));
}

TEST_F(LlamaEngineTest, AReleasedSlotCanBeUsedAgain) {
  for (int round = 0; round < 3; ++round) {
    Generation generation(engine(), 4, question(kFrance));
    generate(engine(), generation, 12);
    EXPECT_THAT(generation.answer(), HasSubstr("Paris"));
    engine().release(Slot{4});
  }
}

TEST_F(LlamaEngineTest, ACopiedPrefixGivesTheSameTokenAsPrefilling) {
  Generation source(engine(), 3, question(kJapan));
  generate(engine(), source, 8);
  Generation copy(engine(), 9, question(kJapan));
  ASSERT_TRUE(
      engine().copy_prefix(Slot{3}, Slot{9}, static_cast<std::int32_t>(copy.tokens().size() - 1)));
  engine().release(Slot{3});
  copy.has(copy.tokens().size() - 1);
  generate(engine(), copy, 8);
  EXPECT_EQ(copy.answer_tokens(), source.answer_tokens());
}

TEST_F(LlamaEngineTest, ANotYetComputedPrefixCanNotBeCopied) {
  EXPECT_FALSE(engine().copy_prefix(Slot{3}, Slot{9}, 1));
  Generation source(engine(), 3, question("Hi"));
  step(engine(), {&source});
  EXPECT_FALSE(engine().copy_prefix(Slot{3}, Slot{9}, 500));
}

TEST_F(LlamaEngineTest, RecomputingASequenceGoesOnAsItWouldHave) {
  Sampling sampling;
  sampling.seed = 11;
  Generation steady(engine(), 0, question("Tell me a story."), sampling);
  generate(engine(), steady, 12, false);
  Generation disturbed(engine(), 1, question("Tell me a story."), sampling);
  generate(engine(), disturbed, 6, false);
  engine().release(disturbed.slot());
  disturbed.forget();
  generate(engine(), disturbed, 6, false);
  EXPECT_EQ(disturbed.answer_tokens(), steady.answer_tokens());
}

TEST_F(LlamaEngineTest, DoesNotEndBeforeItMay) {
  Generation ends(engine(), 0, question("Say yes."));
  generate(engine(), ends, 200);
  ASSERT_TRUE(ends.ended());
  Generation goes_on(engine(), 1, question("Say yes."));
  generate(engine(), goes_on, static_cast<int>(ends.answer_tokens().size()) + 20, false);
  EXPECT_FALSE(goes_on.ended());
}

TEST_F(LlamaEngineTest, ALogitBiasForcesItsToken) {
  const Token forced = (*engine().tokenize(question("banana")))[4];
  Sampling sampling = greedy();
  sampling.logit_bias = {{forced, 100.0F}};
  Generation generation(engine(), 0, question(kFrance), sampling);
  generate(engine(), generation, 3);
  EXPECT_EQ(generation.answer_tokens(), std::vector<Token>(3, forced));
}

TEST_F(LlamaEngineTest, ASeedGivesTheSameAnswerAgain) {
  Sampling sampling;
  sampling.seed = 42;
  sampling.top_p = 0.9F;
  std::vector<std::vector<Token>> answers;
  for (const std::uint64_t seed : {42U, 42U, 43U}) {
    sampling.seed = seed;
    Generation generation(engine(), 0, question("Tell me a story."), sampling);
    generate(engine(), generation, 16, false);
    answers.push_back(generation.answer_tokens());
    engine().release(Slot{0});
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_NE(answers[0], answers[2]);
}

TEST_F(LlamaEngineTest, LogprobsCarryTheirPieces) {
  Sampling sampling = greedy();
  sampling.top_logprobs = 5;
  Generation generation(engine(), 0, question(kFrance), sampling);
  generate(engine(), generation, 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const TokenLogprob& logprob = generation.logprobs()[i];
    EXPECT_EQ(logprob.chosen.token, generation.answer_tokens()[i]);
    EXPECT_EQ(logprob.chosen.token, logprob.top.front().token);
    EXPECT_EQ(logprob.chosen.piece, logprob.top.front().piece);
    ASSERT_EQ(logprob.top.size(), 5U);
    EXPECT_TRUE(std::is_sorted(logprob.top.begin(), logprob.top.end(),
                               [](const auto& a, const auto& b) { return a.logprob > b.logprob; }));
    EXPECT_LE(logprob.chosen.logprob, 0);
  }
  EXPECT_THAT(generation.answer(), testing::StartsWith(generation.logprobs().front().chosen.piece));
}

TEST_F(LlamaEngineTest, EmbedsAlikeTextsNearerThanOthers) {
  const auto vector_of = [&](const std::string& text) {
    PromptSource source;
    source.raw = text;
    Result<std::vector<float>> vector = engine().embed(*engine().tokenize(source), never);
    EXPECT_TRUE(vector) << vector.error().message;
    return vector.value_or(std::vector<float>(engine().info().embedding_size));
  };
  const auto dot = [](const std::vector<float>& a, const std::vector<float>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  const std::vector<float> cat = vector_of("The cat sat on the mat and slept.");
  EXPECT_EQ(cat.size(), engine().info().embedding_size);
  EXPECT_NEAR(dot(cat, cat), 1, 1e-5);
  EXPECT_EQ(cat, vector_of("The cat sat on the mat and slept."));
  EXPECT_GT(dot(cat, vector_of("A cat was sleeping on a mat.")),
            dot(cat, vector_of("int main() { return 0; }")));
}

TEST_F(LlamaEngineTest, EmbedsATextOfManyChunksAndCanBeAborted) {
  PromptSource source;
  source.raw = std::string(900, 'x');
  std::vector<Token> tokens = *engine().tokenize(source);
  tokens.resize(300, tokens.back());
  EXPECT_TRUE(engine().embed(tokens, never));
  int asked = 0;
  const Result<std::vector<float>> aborted = engine().embed(tokens, [&] { return ++asked == 50; });
  ASSERT_FALSE(aborted);
  EXPECT_EQ(aborted.error().code, Code::kCancelled);
}

TEST_F(LlamaEngineTest, EmbedsBesideASteps) {
  PromptSource source;
  source.raw = "Some text to embed.";
  const std::vector<Token> tokens = *engine().tokenize(source);
  const std::vector<float> expected = *engine().embed(tokens, never);
  std::thread embedder([&] {
    for (int i = 0; i < 5; ++i) EXPECT_EQ(*engine().embed(tokens, never), expected);
  });
  Generation generation(engine(), 0, question(kFrance));
  generate(engine(), generation, 12);
  embedder.join();
  EXPECT_THAT(generation.answer(), HasSubstr("Paris"));
}

TEST(LlamaEngineOptions, WithoutRoomForAllTheStepChangesNothing) {
  if (test_model_path().empty()) GTEST_SKIP() << "SLUICE_MODEL is not set";
  Result<std::unique_ptr<Engine>> made = make_engine(true, 4, 256);
  ASSERT_TRUE(made) << made.error().message;
  Engine& engine = **made;
  EXPECT_EQ(engine.info().kv_tokens, 256U);
  Generation talking(engine, 0, question(kFrance));
  step(engine, {&talking});

  const Generation large(engine, 1, question(std::string(500, 'x')));
  std::vector<Token> tokens = large.tokens();
  tokens.resize(256, tokens.back());
  StepResult result;
  engine.step({{talking.work(), {Slot{1}, 0, tokens, false, nullptr, true}}}, never, result);
  EXPECT_EQ(result.status, StepStatus::kNoKvSpace);
  EXPECT_TRUE(result.sampled.empty());

  generate(engine, talking, 16);
  EXPECT_THAT(talking.answer(), HasSubstr("Paris"));
}

TEST(LlamaEngineOptions, CopiesAPrefixInUnifiedKvToo) {
  if (test_model_path().empty()) GTEST_SKIP() << "SLUICE_MODEL is not set";
  Result<std::unique_ptr<Engine>> made = make_engine(true, 2, 256);
  ASSERT_TRUE(made) << made.error().message;
  Generation source(**made, 0, question(kJapan));
  generate(**made, source, 8);
  Generation copy(**made, 1, question(kJapan));
  ASSERT_TRUE(
      (*made)->copy_prefix(Slot{0}, Slot{1}, static_cast<std::int32_t>(copy.tokens().size() - 1)));
  (*made)->release(Slot{0});
  copy.has(copy.tokens().size() - 1);
  generate(**made, copy, 8);
  EXPECT_EQ(copy.answer_tokens(), source.answer_tokens());
}

TEST(LlamaEngineOptions, TakesNoMoreContextThanTheModelWasTrainedFor) {
  if (test_model_path().empty()) GTEST_SKIP() << "SLUICE_MODEL is not set";
  Result<std::unique_ptr<Engine>> made = make_engine(true, 1, 100'000'000);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_LT((*made)->info().context_tokens, 100'000'000U);
}

TEST(LlamaEngineOptions, RefusesWhatCanNotBe) {
  const auto refused = [](auto change) {
    LlamaOptions options;
    options.model_path = "/nonexistent/model.gguf";
    change(options);
    const Result<std::unique_ptr<Engine>> made = make_llama_engine(options);
    return made ? std::string() : made.error().message;
  };
  EXPECT_THAT(refused([](LlamaOptions& o) { o.slots = 0; }), HasSubstr("--max-sequences"));
  EXPECT_THAT(refused([](LlamaOptions& o) { o.slots = 257; }), HasSubstr("--max-sequences"));
  EXPECT_THAT(refused([](LlamaOptions& o) { o.max_step_tokens = 31; }),
              HasSubstr("--max-step-tokens"));
  EXPECT_THAT(refused([](LlamaOptions& o) { o.flash_attention = false; }),
              HasSubstr("--flash-attention"));
  EXPECT_THAT(refused([](LlamaOptions&) {}), HasSubstr("/nonexistent/model.gguf"));
}

}  // namespace
}  // namespace sluice
