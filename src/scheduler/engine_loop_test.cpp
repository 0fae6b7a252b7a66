#include "scheduler/engine_loop.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "scheduler/loop_bench.h"

namespace sluice {
namespace {

TEST(EngineLoop, EndsAtMaxTokensWithLengthAndTheCounts) {
  LoopBench bench;
  auto reader = bench.ask({.prompt = "abc", .max_tokens = 3});
  bench.turns(3);
  const Got got = read(reader);
  EXPECT_EQ(got.text, "token token token ");
  EXPECT_EQ(got.finish_reason, FinishReason::kLength);
  ASSERT_TRUE(got.end && *got.end);
  EXPECT_EQ((*got.end)->prompt_tokens, 4U);
  EXPECT_EQ((*got.end)->completion_tokens, 3U);
  EXPECT_FALSE(bench.loop.turn());
  EXPECT_EQ(bench.engine.kv_used(), 0U);
}

TEST(EngineLoop, EndsAtTheModelsEndWithStopAndCountsItsToken) {
  LoopBench bench({.script = script("piece \"a\"\npiece \"b\"\n")});
  auto reader = bench.ask({.max_tokens = 10});
  bench.turns(3);
  const Got got = read(reader);
  EXPECT_EQ(got.text, "ab");
  EXPECT_EQ(got.finish_reason, FinishReason::kStop);
  EXPECT_EQ(got.tokens, 3U);
}

TEST(EngineLoop, EndsAtTheContextsEnd) {
  LoopBench bench({.context_tokens = 8});
  auto reader = bench.ask({.prompt = "abcd", .max_tokens = 100});
  bench.turns(10);
  const Got got = read(reader);
  EXPECT_EQ(got.tokens, 3U);
  EXPECT_EQ(got.finish_reason, FinishReason::kLength);
}

TEST(EngineLoop, AStopStringOverTokensNeverShowsAndEndsTheSequence) {
  LoopBench bench({.script = script("piece \"one \"\npiece \"four\"\npiece \" fi\"\npiece \"ve "
                                    "s\"\npiece \"ix\"\npiece \" seven\"\n")});
  auto reader = bench.ask({.max_tokens = 100, .stop = {"four five six"}});
  Got got;
  for (int i = 0; i < 5; ++i) {
    bench.turns(1);
    got.read(reader);
    EXPECT_EQ(got.text, "one ");
  }
  EXPECT_EQ(got.finish_reason, FinishReason::kStop);
  EXPECT_EQ(got.matched_stop, "four five six");
  EXPECT_EQ((*got.end)->completion_tokens, 5U);
}

TEST(EngineLoop, HeldBackTextComesWithTheEndIfNothingMatched) {
  LoopBench bench({.script = script("piece \"x\"\npiece \"four fi\"\n")});
  auto reader = bench.ask({.max_tokens = 100, .stop = {"four five six"}});
  bench.turns(3);
  EXPECT_EQ(read(reader).text, "xfour fi");
}

TEST(EngineLoop, BeforeMinTokensNeitherEndNorStopStringEnds) {
  LoopBench bench({.script = script("piece \"a\"\n")});
  auto reader = bench.ask({.max_tokens = 10, .min_tokens = 4, .stop = {"a"}});
  bench.turns(10);
  const Got got = read(reader);
  EXPECT_EQ(got.text, "a");
  EXPECT_EQ(got.tokens, 5U) << "a, three tokens that had to come, the end";
}

TEST(EngineLoop, LogprobsComeOneForEachToken) {
  LoopBench bench({.script = script("piece \"x\"\npiece \"st\"\npiece \"op\"\npiece \"y\"\n")});
  auto reader = bench.ask({.max_tokens = 4, .stop = {"stopped"}, .top_logprobs = 2});
  bench.turns(4);
  const Got got = read(reader);
  EXPECT_EQ(got.logprobs, 4U);
  EXPECT_EQ(got.tokens, 4U);
}

TEST(EngineLoop, EachRequestGetsItsOwnText) {
  LoopBench bench({.script = script("echo\n")});
  std::vector<StreamReader> readers;
  for (int i = 0; i < 50; ++i)
    readers.push_back(bench.ask({.prompt = "nonce-" + std::to_string(i), .max_tokens = 100}));
  bench.turns(60);
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(read(readers[static_cast<std::size_t>(i)]).text, "nonce-" + std::to_string(i));
}

TEST(EngineLoop, NChoicesShareOnePrefillAndEndOnce) {
  LoopBench bench({.script = script("echo\n")});
  auto reader = bench.ask({.prompt = "abcdef", .max_tokens = 100, .n = 3});
  bench.turns(20);
  std::vector<Delta> out;
  auto credit = StreamReader::Credit::unlimited();
  const auto end = reader.take(credit, out);
  std::vector<std::string> texts(3);
  for (const Delta& delta : out) texts[delta.index] += delta.bytes;
  EXPECT_EQ(texts, (std::vector<std::string>(3, "abcdef")));
  ASSERT_TRUE(end && *end);
  EXPECT_EQ((*end)->completion_tokens, 3U * 8U);
  // 7 prompt tokens once, and for each of the other two its last one anew.
  EXPECT_EQ(bench.metric("sluice_step_rows_total{phase=\"prefill\"}"), "7");
  EXPECT_EQ(bench.engine.kv_used(), 0U);
}

TEST(EngineLoop, APromptIsPrefilledInChunks) {
  Limits limits;
  limits.max_step_tokens = 10;
  LoopBench bench({}, limits);
  auto reader = bench.ask({.prompt = std::string(34, 'x'), .max_tokens = 1});
  bench.turns(3);
  EXPECT_TRUE(read(reader).text.empty());
  bench.turns(1);
  EXPECT_EQ(read(reader).text, "token ");
}

TEST(EngineLoop, ALongPromptDoesNotStopTheOthers) {
  Limits limits;
  limits.max_step_tokens = 10;
  LoopBench bench({}, limits);
  auto chat = bench.ask({.max_tokens = 100});
  bench.turns(1);
  auto longer = bench.ask({.prompt = std::string(1000, 'x'), .max_tokens = 1});
  for (int i = 0; i < 20; ++i) {
    bench.turns(1);
    EXPECT_EQ(read(chat).tokens, i == 0 ? 2U : 1U);
  }
}

TEST(EngineLoop, MoreThanTheSlotsWaitAndRunInTheirOrder) {
  Limits limits;
  limits.max_sequences = 1;
  LoopBench bench({}, limits);
  auto first = bench.ask({.max_tokens = 2});
  auto second = bench.ask({.max_tokens = 2});
  auto urgent = bench.ask({.max_tokens = 2, .priority = 5});
  bench.turns(2);
  EXPECT_TRUE(read(urgent).end) << "the higher priority is first";
  bench.turns(2);
  EXPECT_TRUE(read(first).end);
  EXPECT_FALSE(read(second).end);
  bench.turns(2);
  EXPECT_TRUE(read(second).end);
}

TEST(EngineLoop, PlacesInTheQueueAreGivenBackWhenTheSlotIsGot) {
  LoopBench bench;
  auto reader = bench.ask({.max_tokens = 100});
  EXPECT_EQ(bench.admission.load().waiting, 1U);
  bench.turns(1);
  EXPECT_EQ(bench.admission.load().waiting, 0U);
  EXPECT_EQ(bench.admission.load().running, 1U);
}

TEST(EngineLoop, AClientWithAHundredRequestsDoesNotStarveOneWithASingleOne) {
  Limits limits;
  limits.max_sequences = 2;
  LoopBench bench({.slots = 2}, limits);
  std::vector<StreamReader> many;
  for (int i = 0; i < 100; ++i) many.push_back(bench.ask({.max_tokens = 4, .flow = "many"}));
  bench.turns(1);
  auto one = bench.ask({.max_tokens = 4, .flow = "one"});
  bench.turns(10);
  EXPECT_TRUE(read(one).end);
}

// One slot, and a step of 10 ms: each request takes two steps.
TEST(EngineLoop, WhatWouldComeToItsTurnAfterItsDeadlineIsRefusedAtOnce) {
  Limits limits;
  limits.max_sequences = 1;
  LoopBench bench({.slots = 1}, limits);
  const auto step = [&bench] {
    bench.turns(1);
    bench.clock.advance(milliseconds(10));
  };
  std::vector<StreamReader> queue;
  for (int i = 0; i < 40; ++i) queue.push_back(bench.ask({.max_tokens = 2}));
  for (int i = 0; i < 40; ++i) step();

  auto late = bench.ask({.deadline = bench.clock.now() + milliseconds(300)});
  auto in_time = bench.ask({.deadline = bench.clock.now() + milliseconds(3000)});
  step();
  const Got refused = read(late);
  ASSERT_EQ(code(refused), Code::kResourceExhausted);
  EXPECT_NEAR(static_cast<double>(refused.end->error().retry_after->count()), 400, 60);
  EXPECT_FALSE(read(in_time).end);
  EXPECT_EQ(bench.metric("sluice_requests_ended_total{how=\"late\"}"), "1");
}

TEST(EngineLoop, NobodyIsRefusedAsLateWhereASlotIsFree) {
  Limits limits;
  limits.max_sequences = 2;
  LoopBench bench({.slots = 2}, limits);
  for (int i = 0; i < 40; ++i) {
    auto a = bench.ask({.max_tokens = 1}), b = bench.ask({.max_tokens = 1}),
         c = bench.ask({.max_tokens = 1});
    bench.turns(2);
    bench.clock.advance(milliseconds(1000));
  }
  bench.turns(1);
  auto soon = bench.ask({.max_tokens = 1, .deadline = bench.clock.now() + milliseconds(5)});
  bench.turns(1);
  EXPECT_EQ(read(soon).tokens, 1U);
}

}  // namespace
}  // namespace sluice
