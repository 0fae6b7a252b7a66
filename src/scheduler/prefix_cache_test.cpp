#include "scheduler/prefix_cache.h"

#include <gtest/gtest.h>

#include <string>

#include "scheduler/loop_bench.h"

namespace sluice {
namespace {

std::vector<Token> text(std::int32_t first, std::int32_t size) {
  std::vector<Token> tokens;
  for (std::int32_t i = 0; i < size; ++i) tokens.push_back(first + i);
  return tokens;
}

std::vector<Token> joined(std::vector<Token> a, const std::vector<Token>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A cache over an engine whose slots hold what the test says that they hold.
struct PrefixCacheTest : testing::Test {
  explicit PrefixCacheTest(std::uint32_t slots = 3)
      : engine({.script = script("piece \"x\"\nloop"), .slots = slots, .keeps_prefixes = true},
               clock),
        cache(engine, slots) {}

  // A sequence came, was computed, and ended.
  Slot ended(const std::vector<Token>& tokens, const std::string& scope = "") {
    const PrefixCache::Taken taken = cache.take(scope, tokens, {});
    compute(taken.slot, taken.tokens, tokens);
    cache.put(taken.slot, scope, tokens);
    return taken.slot;
  }
  void compute(Slot slot, std::int32_t from, const std::vector<Token>& tokens) {
    Batch batch;
    batch.work.push_back({.slot = slot,
                          .first_position = from,
                          .tokens = std::span(tokens).subspan(static_cast<std::size_t>(from))});
    StepResult result;
    engine.step(
        batch, [] { return false; }, result);
  }

  ManualClock clock;
  ScriptedEngine engine;
  PrefixCache cache;
};

TEST_F(PrefixCacheTest, ATextThatGoesOnFromAKeptOneTakesItsSlot) {
  const Slot slot = ended(text(0, 20));
  const auto taken = cache.take("", text(0, 30), {});
  EXPECT_EQ(taken.slot, slot);
  EXPECT_EQ(taken.tokens, 20);
  EXPECT_EQ(cache.kept_tokens(), 0U);
}

TEST_F(PrefixCacheTest, TheLastTokenIsAlwaysLeftToCompute) {
  (void)ended(text(0, 20));
  EXPECT_EQ(cache.take("", text(0, 20), {}).tokens, 19);
  EXPECT_EQ(engine.kv_used(), 19U);
}

TEST_F(PrefixCacheTest, WhatFollowsTheSharedBeginningIsForgotten) {
  (void)ended(text(0, 20));
  EXPECT_EQ(cache.take("", joined(text(0, 15), text(100, 9)), {}).tokens, 15);
  EXPECT_EQ(engine.kv_used(), 15U);
}

TEST_F(PrefixCacheTest, AShortSharedBeginningIsCopiedAndTheLongTextKept) {
  const Slot kept = ended(text(0, 100));
  const auto taken = cache.take("", joined(text(0, 10), text(200, 30)), {});
  EXPECT_NE(taken.slot, kept);
  EXPECT_EQ(taken.tokens, 10);
  EXPECT_EQ(cache.kept_tokens(), 100U);
  EXPECT_EQ(cache.take("", text(0, 120), {}).tokens, 100) << "its own conversation goes on";
}

TEST_F(PrefixCacheTest, ABeginningOfARunningSequenceIsCopied) {
  const auto running = cache.take("", text(0, 40), {});
  compute(running.slot, 0, text(0, 40));
  const auto taken =
      cache.take("", joined(text(0, 12), text(70, 5)), {.slot = running.slot, .tokens = 12});
  EXPECT_NE(taken.slot, running.slot);
  EXPECT_EQ(taken.tokens, 12);
}

TEST_F(PrefixCacheTest, AFewTokensAreNotWorthACopy) {
  (void)ended(text(0, 100));
  EXPECT_EQ(cache.take("", joined(text(0, 3), text(200, 30)), {}).tokens, 0);
}

TEST_F(PrefixCacheTest, ScopesShareNothing) {
  (void)ended(text(0, 20), "tenant a");
  EXPECT_EQ(cache.take("tenant b", text(0, 30), {}).tokens, 0);
  EXPECT_EQ(cache.take("", text(0, 30), {}).tokens, 0);
  EXPECT_EQ(cache.take("tenant a", text(0, 30), {}).tokens, 20);
}

TEST_F(PrefixCacheTest, TheOneUnusedForLongestGivesWay) {
  (void)ended(text(0, 20));
  (void)ended(text(100, 20));
  (void)ended(text(200, 20));
  (void)cache.take("", text(300, 20), {});
  EXPECT_EQ(cache.kept_tokens(), 40U);
  EXPECT_EQ(cache.take("", text(100, 30), {}).tokens, 20);
  EXPECT_EQ(cache.take("", text(200, 30), {}).tokens, 20);
  EXPECT_EQ(cache.free_slots(), 0U);
}

TEST_F(PrefixCacheTest, WhatIsCopiedIsNotWhatGivesWay) {
  (void)ended(text(0, 100));
  (void)ended(text(200, 20));
  (void)ended(text(400, 20));
  EXPECT_EQ(cache.take("", joined(text(0, 10), text(700, 5)), {}).tokens, 10);
  EXPECT_EQ(cache.take("", text(0, 120), {}).tokens, 100);
}

TEST_F(PrefixCacheTest, TheOnlyFreeSlotIsTakenWithWhatItShares) {
  (void)cache.take_empty();
  (void)cache.take_empty();
  const Slot slot = ended(text(0, 100));
  const auto taken = cache.take("", joined(text(0, 10), text(200, 30)), {});
  EXPECT_EQ(taken.slot, slot);
  EXPECT_EQ(taken.tokens, 10);
}

TEST_F(PrefixCacheTest, DroppingFreesTheOldestFirstAndSaysWhenNothingIsLeft) {
  (void)ended(text(0, 20));
  (void)ended(text(100, 30));
  EXPECT_TRUE(cache.drop_oldest());
  EXPECT_EQ(engine.kv_used(), 30U);
  EXPECT_TRUE(cache.drop_oldest());
  EXPECT_FALSE(cache.drop_oldest());
  EXPECT_EQ(engine.kv_used(), 0U);
  EXPECT_EQ(cache.free_slots(), 3U);
}

// In the loop: the same engine behind the scheduler.
struct PrefixLoop : LoopBench {
  explicit PrefixLoop(std::uint64_t kv_tokens = 1000)
      : LoopBench({.script = script("piece \"x\"\nloop"),
                   .slots = 4,
                   .kv_tokens = kv_tokens,
                   .keeps_prefixes = true},
                  {.max_sequences = 4}) {}

  Usage answer(const Ask& request) {
    StreamReader reader = ask(request);
    turns(40);
    const Got got = read(reader);
    CHECK(got.end && *got.end, "the request finishes");
    return **got.end;
  }
};

const std::string kSystem(50, 's');

TEST(PrefixCacheInTheLoop, ASecondTurnPaysOnlyForWhatIsNew) {
  PrefixLoop bench;
  EXPECT_EQ(bench.answer({.prompt = kSystem + "one"}).cached_tokens, 0U);
  const Usage second = bench.answer({.prompt = kSystem + "two"});
  EXPECT_EQ(second.prompt_tokens, 54U);
  EXPECT_EQ(second.cached_tokens, 51U);
  EXPECT_EQ(second.cache_write_tokens, 3U);
  EXPECT_EQ(bench.metric("sluice_cached_prompt_tokens_total"), "51");
}

TEST(PrefixCacheInTheLoop, NoCacheReadsNothingAndNoStoreLeavesNothing) {
  PrefixLoop bench;
  (void)bench.answer({.prompt = kSystem, .caching = {.store = false}});
  EXPECT_EQ(bench.engine.kv_used(), 0U);
  EXPECT_EQ(bench.answer({.prompt = kSystem}).cached_tokens, 0U);
  EXPECT_EQ(bench.answer({.prompt = kSystem, .caching = {.read = false}}).cached_tokens, 0U);
  EXPECT_EQ(bench.answer({.prompt = kSystem}).cached_tokens, 50U);
}

TEST(PrefixCacheInTheLoop, KeptKvGivesWayWhenARunningSequenceNeedsTheRoom) {
  PrefixLoop bench(/*kv_tokens=*/120);
  (void)bench.answer({.prompt = std::string(60, 'a')});
  (void)bench.answer({.prompt = std::string(80, 'b')});
  EXPECT_EQ(bench.metric("sluice_put_back_total"), "0");
  EXPECT_EQ(bench.metric("sluice_requests_ended_total{how=\"finished\"}"), "2");
}

TEST(PrefixCacheInTheLoop, ACancelledRequestLeavesWhatWasComputed) {
  PrefixLoop bench;
  {
    StreamReader reader = bench.ask({.prompt = kSystem, .max_tokens = 1000});
    bench.turns(3);
  }
  bench.turns(1);
  EXPECT_EQ(bench.metric("sluice_kv_used_tokens"), "0");
  EXPECT_EQ(bench.answer({.prompt = kSystem}).cached_tokens, 50U);
}

TEST(PrefixCacheInTheLoop, AFailedPassLeavesNothing) {
  LoopBench bench(
      {.script = script("piece \"x\"\nbreak \"oh\""), .slots = 2, .keeps_prefixes = true},
      {.max_sequences = 2});
  StreamReader reader = bench.ask({.prompt = kSystem, .max_tokens = 5});
  bench.turns(4);
  EXPECT_EQ(code(read(reader)), Code::kInternal);
  EXPECT_EQ(bench.engine.kv_used(), 0U);
  EXPECT_EQ(bench.metric("sluice_prefix_cache_tokens"), "0");
}

}  // namespace
}  // namespace sluice
