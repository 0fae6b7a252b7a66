#include "engine/scripted_engine.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

const AbortCheck kNever = [] { return false; };

// One sequence by itself, from its prompt on.
struct Solo {
  explicit Solo(const std::string& text, ScriptedOptions options = {}) {
    auto script = Script::parse(text);
    EXPECT_TRUE(script);
    options.script = std::move(*script);
    engine = std::make_unique<ScriptedEngine>(std::move(options), clock);
    tokens = *engine->tokenize({.messages = {}, .raw = "ab"});
    sampler = engine->make_sampler({}, 0, tokens);
  }

  Sampled next(bool may_end = true) {
    const Batch batch{{{.slot = Slot{0},
                        .tokens = tokens,
                        .sample = true,
                        .sampler = sampler.get(),
                        .may_end = may_end}}};
    engine->step(batch, kNever, result);
    return result.sampled.empty() ? Sampled{} : result.sampled.front();
  }

  ManualClock clock;
  std::unique_ptr<ScriptedEngine> engine;
  std::vector<Token> tokens;
  std::unique_ptr<SamplerState> sampler;
  StepResult result;
};

TEST(ScriptedEngine, PlaysItsPiecesThenEnds) {
  Solo solo("piece \"x\"\npiece \"y\"\n");
  EXPECT_EQ(solo.next().piece, "x");
  EXPECT_EQ(solo.next().piece, "y");
  EXPECT_EQ(solo.next().kind, Sampled::Kind::kEnd);
}

TEST(ScriptedEngine, DoesNotEndWhereItMustNot) {
  Solo solo("piece \"x\"\n");
  (void)solo.next();
  EXPECT_EQ(solo.next(false).kind, Sampled::Kind::kToken);
}

TEST(ScriptedEngine, LoopsForEver) {
  Solo solo("piece \"x\"\nloop\n");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(solo.next().piece, "x");
}

TEST(ScriptedEngine, EchoesThePromptByteByByte) {
  Solo solo("echo\n");
  EXPECT_EQ(std::string(solo.next().piece), "a");
  EXPECT_EQ(std::string(solo.next().piece), "b");
}

TEST(ScriptedEngine, ADelayedPieceIsPendingUntilItsTime) {
  // The pace's clock stands still, so a pending pass must not wait for it: another sequence keeps
  // it busy.
  Solo solo("piece \"x\"\npiece \"y\" 20ms\n");
  const auto other = solo.engine->make_sampler({}, 1, solo.tokens);
  (void)solo.next();
  const Batch both{
      {{.slot = Slot{0}, .tokens = solo.tokens, .sample = true, .sampler = solo.sampler.get()},
       {.slot = Slot{1}, .tokens = solo.tokens, .sample = true, .sampler = other.get()}}};
  solo.engine->step(both, kNever, solo.result);
  EXPECT_EQ(solo.result.sampled[0].kind, Sampled::Kind::kPending);
  EXPECT_EQ(solo.result.sampled[1].piece, "x");
  solo.clock.advance(std::chrono::milliseconds(20));
  EXPECT_EQ(solo.next().piece, "y");
}

TEST(ScriptedEngine, NeverHoldsMoreKvThanItHas) {
  Solo solo("piece \"x\"\nloop\n", {.kv_tokens = 2});
  (void)solo.next();
  EXPECT_EQ(solo.result.status, StepStatus::kNoKvSpace);
  EXPECT_EQ(solo.engine->kv_used(), 0U) << "nothing was computed";
}

TEST(ScriptedEngine, AnAbortedPaceComputesNothing) {
  Solo solo("piece \"x\"\nloop\n", {.step = std::chrono::hours(1)});
  const Batch batch{
      {{.slot = Slot{0}, .tokens = solo.tokens, .sample = true, .sampler = solo.sampler.get()}}};
  solo.engine->step(
      batch, [] { return true; }, solo.result);
  EXPECT_EQ(solo.result.status, StepStatus::kAborted);
}

TEST(ScriptedEngine, CopiesAPrefixOnlyIfItIsThere) {
  Solo solo("piece \"x\"\nloop\n");
  (void)solo.next();
  EXPECT_TRUE(solo.engine->copy_prefix(Slot{0}, Slot{1}, 2));
  EXPECT_FALSE(solo.engine->copy_prefix(Slot{0}, Slot{2}, 4));
  EXPECT_EQ(solo.engine->kv_used(), 5U);
  solo.engine->release(Slot{0});
  EXPECT_EQ(solo.engine->kv_used(), 2U);
}

TEST(ScriptedEngine, EmbedsToLengthOne) {
  Solo solo("hang\n");
  const auto vector = solo.engine->embed(solo.tokens, kNever);
  ASSERT_TRUE(vector);
  float squares = 0;
  for (const float value : *vector) squares += value * value;
  EXPECT_NEAR(squares, 1, 1e-5);
}

}  // namespace
}  // namespace sluice
