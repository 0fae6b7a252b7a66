// How requests end early and how they wait: cancels, deadlines, slow readers, a full KV cache, a
// broken engine.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "scheduler/loop_bench.h"

namespace sluice {
namespace {

// Cancellation, in every phase.

TEST(EngineLoopEndings, AReaderDroppedBeforeItsRequestIsLookedAtIsReaped) {
  LoopBench bench;
  { auto reader = bench.ask({}); }
  EXPECT_FALSE(bench.loop.turn());
  EXPECT_EQ(bench.metric("sluice_requests_ended_total{how=\"cancelled\"}"), "1");
  EXPECT_EQ(bench.metric("sluice_steps_total"), "0");
  EXPECT_EQ(bench.admission.load().waiting, 0U);
}

TEST(EngineLoopEndings, AReaderDroppedInTheQueueIsReapedUnrun) {
  Limits limits;
  limits.max_sequences = 1;
  LoopBench bench({}, limits);
  auto running = bench.ask({.max_tokens = 100});
  {
    auto queued = bench.ask({});
    bench.turns(1);
  }
  bench.turns(1);
  EXPECT_EQ(bench.admission.load().waiting, 0U);
  EXPECT_EQ(bench.metric("sluice_prompt_tokens_total"), "3");
}

TEST(EngineLoopEndings, AReaderDroppedInPrefillFreesItsKvBeforeTheNextStep) {
  Limits limits;
  limits.max_step_tokens = 10;
  LoopBench bench({}, limits);
  {
    auto reader = bench.ask({.prompt = std::string(1000, 'x')});
    bench.turns(3);
    EXPECT_EQ(bench.engine.kv_used(), 30U);
  }
  EXPECT_FALSE(bench.loop.turn());
  EXPECT_EQ(bench.engine.kv_used(), 0U);
}

TEST(EngineLoopEndings, AReaderDroppedWhileDecodingFreesItsKvBeforeTheNextStep) {
  LoopBench bench;
  auto other = bench.ask({.max_tokens = 100});
  {
    auto reader = bench.ask({.max_tokens = 100});
    bench.turns(3);
    EXPECT_EQ(bench.engine.kv_used(), 2U * 5U);
  }
  bench.turns(1);
  EXPECT_EQ(bench.engine.kv_used(), 6U);
  EXPECT_EQ(bench.metric("sluice_cancel_to_free_seconds_count"), "1");
}

TEST(EngineLoopEndings, AReaderDroppedWhileParkedFreesItsKv) {
  Limits limits;
  limits.stream_deltas = 2;
  LoopBench bench({}, limits);
  {
    auto reader = bench.ask({.max_tokens = 100});
    bench.turns(5);
    EXPECT_EQ(bench.admission.load().parked, 1U);
  }
  EXPECT_FALSE(bench.loop.turn());
  EXPECT_EQ(bench.engine.kv_used(), 0U);
  EXPECT_EQ(bench.admission.load().parked, 0U);
}

TEST(EngineLoopEndings, APassThatNobodyWantsIsAborted) {
  LoopBench bench({.script = script("block\n")});
  std::optional<StreamReader> reader = bench.ask({});
  std::thread engine_thread([&] { bench.loop.run(); });
  bench.await("sluice_prompt_tokens_total", "3");  // counted just before the pass that blocks
  reader.reset();
  bench.await("sluice_requests_ended_total{how=\"cancelled\"}", "1");
  bench.loop.request_stop();
  engine_thread.join();
  EXPECT_EQ(bench.metric("sluice_aborted_steps_total"), "1");
  EXPECT_EQ(bench.engine.kv_used(), 0U);
}

TEST(EngineLoopEndings, TheLoadTellsAfterEachTurnWhatTheKvHolds) {
  LoopBench bench;
  auto first = bench.ask({.max_tokens = 3});
  auto second = bench.ask({.max_tokens = 5});
  std::size_t turns_with_work = 0;
  while (bench.loop.turn()) {
    EXPECT_EQ(bench.admission.load().kv_used_tokens, bench.engine.kv_used());
    ++turns_with_work;
  }
  EXPECT_EQ(turns_with_work, 5U);
}

TEST(EngineLoopEndings, AThousandCancelsLeaveNoTrace) {
  Limits limits;
  limits.max_sequences = 8;
  LoopBench bench({}, limits);
  for (int round = 0; round < 100; ++round) {
    std::vector<StreamReader> readers;
    for (int i = 0; i < 10; ++i)
      readers.push_back(
          bench.ask({.prompt = std::string(static_cast<std::size_t>(i), 'x'), .max_tokens = 50}));
    bench.turns(round % 7);
  }
  bench.turns(2);
  const Load load = bench.admission.load();
  EXPECT_EQ(load.running + load.waiting + load.parked, 0U);
  EXPECT_EQ(load.kv_used_tokens, 0U);
  EXPECT_EQ(bench.engine.kv_used(), 0U);
  EXPECT_EQ(bench.metric("sluice_requests_ended_total{how=\"cancelled\"}"), "1000");
}

// Deadlines.

TEST(EngineLoopEndings, ADeadlineEndsARunningRequestBeforeTheNextStep) {
  LoopBench bench;
  auto reader = bench.ask({.max_tokens = 100, .deadline = bench.clock.now() + milliseconds(50)});
  bench.turns(3);
  bench.clock.advance(milliseconds(50));
  EXPECT_FALSE(bench.loop.turn());
  const Got got = read(reader);
  EXPECT_EQ(code(got), Code::kDeadlineExceeded);
  EXPECT_EQ(got.tokens, 3U) << "what was there is still told";
}

TEST(EngineLoopEndings, AnExpiredRequestInTheQueueNeverReachesTheModel) {
  Limits limits;
  limits.max_sequences = 1;
  LoopBench bench({}, limits);
  auto running = bench.ask({.max_tokens = 100});
  auto queued =
      bench.ask({.prompt = std::string(50, 'x'), .deadline = bench.clock.now() + milliseconds(50)});
  bench.turns(1);
  bench.clock.advance(milliseconds(50));
  bench.turns(1);
  EXPECT_EQ(code(read(queued)), Code::kDeadlineExceeded);
  EXPECT_EQ(bench.metric("sluice_prompt_tokens_total"), "3");
}

// Back-pressure.

TEST(EngineLoopEndings, AFullStreamIsParkedAndTheOthersGoOn) {
  Limits limits;
  limits.stream_deltas = 4;
  LoopBench bench({}, limits);
  auto slow = bench.ask({.max_tokens = 100});
  auto quick = bench.ask({.max_tokens = 100});
  for (int i = 0; i < 20; ++i) {
    bench.turns(1);
    EXPECT_EQ(read(quick).tokens, 1U);
  }
  EXPECT_EQ(bench.admission.load().parked, 1U);
  EXPECT_EQ(read(slow).tokens, 4U) << "no further than the bound";
}

TEST(EngineLoopEndings, AParkedRequestGoesOnWhenReadAndLosesNothing) {
  Limits limits;
  limits.stream_deltas = 4;
  LoopBench bench({.script = script("echo\n")}, limits);
  const std::string prompt = "the quick brown fox jumps over the lazy dog";
  auto reader = bench.ask({.prompt = prompt, .max_tokens = 100});
  Got got;
  for (int i = 0; i < 100 && !got.end; ++i) {
    bench.turns(6);
    got.read(reader);
  }
  EXPECT_EQ(got.text, prompt);
  EXPECT_EQ(bench.metric("sluice_recomputed_tokens_total"), "0") << "its KV was kept";
  EXPECT_EQ(bench.admission.load().parked, 0U);
}

TEST(EngineLoopEndings, ParkedBeyondTheLimitEndsAsNotReading) {
  Limits limits;
  limits.stream_deltas = 2;
  limits.park_limit = milliseconds(500);
  LoopBench bench({}, limits);
  auto reader = bench.ask({.max_tokens = 100});
  bench.turns(4);
  bench.clock.advance(milliseconds(499));
  bench.turns(1);
  EXPECT_EQ(bench.admission.load().parked, 1U);
  bench.clock.advance(milliseconds(1));
  bench.turns(1);
  const Got got = read(reader);
  EXPECT_EQ(code(got), Code::kResourceExhausted);
  EXPECT_NE(got.end->error().message.find("--park-limit-ms"), std::string::npos);
  EXPECT_EQ(bench.metric("sluice_requests_ended_total{how=\"not_read\"}"), "1");
  EXPECT_EQ(bench.engine.kv_used(), 0U);
}

TEST(EngineLoopEndings, WhenOthersWaitALongParkedRequestGivesUpItsSlotAndStillLosesNothing) {
  Limits limits;
  limits.stream_deltas = 2;
  limits.max_sequences = 1;
  LoopBench bench({.script = script("echo\n")}, limits);
  auto slow = bench.ask({.prompt = "slow reader", .max_tokens = 100});
  bench.turns(3);
  auto other = bench.ask({.prompt = "x", .max_tokens = 100});
  bench.turns(1);
  EXPECT_EQ(bench.admission.load().waiting, 1U);
  bench.clock.advance(milliseconds(1000));
  bench.turns(4);
  EXPECT_EQ(read(other).text, "x");
  Got got;
  for (int i = 0; i < 100 && !got.end; ++i) {
    got.read(slow);
    bench.turns(3);
  }
  EXPECT_EQ(got.text, "slow reader");
  EXPECT_GT((*got.end)->timings.recomputed_tokens, 0U);
}

// The KV cache runs out.

TEST(EngineLoopEndings, WithoutKvSpaceTheYoungestIsPutBackAndNothingFails) {
  LoopBench bench({.script = script("echo\n"), .kv_tokens = 40});
  std::vector<StreamReader> readers;
  for (int i = 0; i < 4; ++i)
    readers.push_back(bench.ask({.prompt = "nonce-" + std::to_string(i), .max_tokens = 100}));
  bench.turns(200);
  for (int i = 0; i < 4; ++i) {
    const Got got = read(readers[static_cast<std::size_t>(i)]);
    EXPECT_EQ(got.text, "nonce-" + std::to_string(i));
    EXPECT_TRUE(got.end && *got.end);
  }
  EXPECT_NE(bench.metric("sluice_put_back_total"), "0");
  EXPECT_EQ(bench.engine.kv_used(), 0U);
}

TEST(EngineLoopEndings, ARequestThatCanNeverFitEndsWithAClearError) {
  LoopBench bench({.kv_tokens = 10});
  auto reader = bench.ask({.prompt = std::string(20, 'x')});
  auto next = bench.ask({.max_tokens = 1});
  bench.turns(5);
  EXPECT_EQ(code(read(reader)), Code::kResourceExhausted);
  EXPECT_EQ(read(next).tokens, 1U);
}

// Failures.

TEST(EngineLoopEndings, ASequenceThatFailsHurtsNoOther) {
  LoopBench bench({.script = script("piece \"a\"\nfail \"no luck\"\n")});
  auto reader = bench.ask({.max_tokens = 100});
  auto lucky = bench.ask({.max_tokens = 1});
  bench.turns(3);
  const Got got = read(reader);
  EXPECT_EQ(got.text, "a");
  EXPECT_EQ(code(got), Code::kInternal);
  EXPECT_TRUE(*read(lucky).end);
}

TEST(EngineLoopEndings, ABrokenPassEndsItsRowsAndTheLoopGoesOn) {
  LoopBench bench({.script = script("break \"out of order\"\npiece \"a\"\n")});
  auto reader = bench.ask({.max_tokens = 1});
  bench.turns(2);
  EXPECT_EQ(code(read(reader)), Code::kInternal);
  EXPECT_EQ(bench.metric("sluice_failed_steps_total"), "1");
  EXPECT_EQ(bench.engine.kv_used(), 0U);
}

TEST(EngineLoopEndings, WhatFailedLeavesNothingForOthersToReuse) {
  for (const char* text : {"piece \"a\"\nfail \"no luck\"\n", "piece \"a\"\nbreak \"all\"\n"}) {
    LoopBench bench({.script = script(text), .keeps_prefixes = true});
    auto reader = bench.ask({.max_tokens = 100, .n = 2, .caching = {.store = true}});
    bench.turns(4);
    EXPECT_EQ(code(read(reader)), Code::kInternal) << text;
    EXPECT_EQ(bench.engine.kv_used(), 0U) << text;
    EXPECT_EQ(bench.metric("sluice_prefix_cache_tokens"), "0") << text;
  }
}

TEST(EngineLoopEndings, StoppingEndsWhatIsLeftAsUnavailable) {
  LoopBench bench({.script = script("hang\n")});
  auto reader = bench.ask({});
  std::thread engine_thread([&] { bench.loop.run(); });
  bench.admission.close();
  bench.loop.request_stop();
  engine_thread.join();
  EXPECT_EQ(code(read(reader)), Code::kUnavailable);
}

TEST(EngineLoopEndings, RunsByItselfUntilItsRequestsAreDone) {
  LoopBench bench;
  std::thread engine_thread([&] { bench.loop.run(); });
  auto reader = bench.ask({.max_tokens = 40});
  Got got;
  while (!got.end) got.read(reader);
  EXPECT_EQ(got.tokens, 40U);
  bench.loop.request_stop();
  engine_thread.join();
}

}  // namespace
}  // namespace sluice
