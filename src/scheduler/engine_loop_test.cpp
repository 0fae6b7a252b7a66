#include "scheduler/engine_loop.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "engine/scripted_engine.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;

Script script(const std::string& text) {
  auto parsed = Script::parse(text);
  if (!parsed) ADD_FAILURE() << parsed.error().message;
  return *parsed;
}

struct Ask {
  std::string prompt = "hi";
  std::int32_t max_tokens = 4;
  std::uint32_t n = 1;
  std::int32_t priority = 0;
  std::int32_t min_tokens = 0;
  TimePoint deadline = kForever;
  std::vector<std::string> stop = {};
  std::optional<std::int32_t> top_logprobs = std::nullopt;
};

// A replica's middle without wires: the tests are wire and engine thread at once.
struct Bench {
  explicit Bench(ScriptedOptions options = {}, Limits bench_limits = {})
      : limits(bench_limits), engine(std::move(options), clock) {}

  StreamReader ask(const Ask& ask) {
    auto ticket = admission.reserve(ask.n);
    Submission submission;
    submission.prompt = *engine.tokenize({.messages = {}, .raw = ask.prompt});
    Sampling sampling;
    sampling.top_logprobs = ask.top_logprobs;
    for (std::uint32_t i = 0; i < ask.n; ++i) {
      submission.samplers.push_back(engine.make_sampler(sampling, i, submission.prompt));
    }
    submission.stopping.max_tokens = ask.max_tokens;
    submission.stopping.min_tokens = ask.min_tokens;
    submission.stopping.stop = ask.stop;
    submission.priority = ask.priority;
    submission.deadline = ask.deadline;
    submission.wire = wire;
    auto reader = admission.submit(std::move(*ticket), std::move(submission));
    if (!reader) ADD_FAILURE() << reader.error().message;
    return std::move(*reader);
  }

  void turns(int count) {
    for (int i = 0; i < count; ++i) (void)loop.turn();
  }

  std::string metric(const std::string& line_begin) {
    const std::string text = "\n" + metrics.text();
    const std::size_t at = text.find("\n" + line_begin + " ");
    if (at == std::string::npos) return "absent";
    const std::size_t value = at + line_begin.size() + 2;
    return text.substr(value, text.find('\n', value) - value);
  }

  // For tests in which the loop runs by itself; the test's time-out ends it if that never comes.
  void await(const std::string& line_begin, const std::string& value) {
    while (metric(line_begin) != value) std::this_thread::yield();
  }

  Limits limits;
  ManualClock clock;
  Metrics metrics;
  Doorbell doorbell{clock};
  std::shared_ptr<WireQueue> wire = std::make_shared<WireQueue>([] {});
  Delivery delivery;
  ScriptedEngine engine;
  Admission admission{limits, clock, doorbell, metrics};
  EngineLoop loop{engine, admission, doorbell, delivery, clock, metrics, limits};
};

struct Got {
  std::string text;
  std::uint32_t tokens = 0;
  std::size_t deltas = 0;
  std::size_t logprobs = 0;
  std::optional<FinishReason> finish_reason;
  std::string matched_stop;
  std::optional<StreamEnd> end;

  void read(StreamReader& reader, std::uint32_t index = 0) {
    std::vector<Delta> out;
    auto credit = StreamReader::Credit::unlimited();
    if (auto ended = reader.take(credit, out)) end = std::move(ended);
    for (const Delta& delta : out) {
      if (delta.index != index) continue;
      ++deltas;
      text += delta.bytes;
      tokens += delta.tokens;
      logprobs += delta.logprobs.size();
      if (delta.finish_reason) finish_reason = delta.finish_reason;
      matched_stop += delta.matched_stop;
    }
  }
};

Got read(StreamReader& reader, std::uint32_t index = 0) {
  Got got;
  got.read(reader, index);
  return got;
}

Code code(const Got& got) { return got.end && !*got.end ? got.end->error().code : Code{0}; }

TEST(EngineLoop, EndsAtMaxTokensWithLengthAndTheCounts) {
  Bench bench;
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
  Bench bench({.script = script("piece \"a\"\npiece \"b\"\n")});
  auto reader = bench.ask({.max_tokens = 10});
  bench.turns(3);
  const Got got = read(reader);
  EXPECT_EQ(got.text, "ab");
  EXPECT_EQ(got.finish_reason, FinishReason::kStop);
  EXPECT_EQ(got.tokens, 3U);
}

TEST(EngineLoop, EndsAtTheContextsEnd) {
  Bench bench({.context_tokens = 8});
  auto reader = bench.ask({.prompt = "abcd", .max_tokens = 100});
  bench.turns(10);
  const Got got = read(reader);
  EXPECT_EQ(got.tokens, 3U);
  EXPECT_EQ(got.finish_reason, FinishReason::kLength);
}

TEST(EngineLoop, AStopStringOverTokensNeverShowsAndEndsTheSequence) {
  Bench bench({.script = script("piece \"one \"\npiece \"four\"\npiece \" fi\"\npiece \"ve "
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
  Bench bench({.script = script("piece \"x\"\npiece \"four fi\"\n")});
  auto reader = bench.ask({.max_tokens = 100, .stop = {"four five six"}});
  bench.turns(3);
  EXPECT_EQ(read(reader).text, "xfour fi");
}

TEST(EngineLoop, BeforeMinTokensNeitherEndNorStopStringEnds) {
  Bench bench({.script = script("piece \"a\"\n")});
  auto reader = bench.ask({.max_tokens = 10, .min_tokens = 4, .stop = {"a"}});
  bench.turns(10);
  const Got got = read(reader);
  EXPECT_EQ(got.text, "a");
  EXPECT_EQ(got.tokens, 5U) << "a, three tokens that had to come, the end";
}

TEST(EngineLoop, LogprobsComeOneForEachToken) {
  Bench bench({.script = script("piece \"x\"\npiece \"st\"\npiece \"op\"\npiece \"y\"\n")});
  auto reader = bench.ask({.max_tokens = 4, .stop = {"stopped"}, .top_logprobs = 2});
  bench.turns(4);
  const Got got = read(reader);
  EXPECT_EQ(got.logprobs, 4U);
  EXPECT_EQ(got.tokens, 4U);
}

TEST(EngineLoop, EachRequestGetsItsOwnText) {
  Bench bench({.script = script("echo\n")});
  std::vector<StreamReader> readers;
  for (int i = 0; i < 50; ++i)
    readers.push_back(bench.ask({.prompt = "nonce-" + std::to_string(i), .max_tokens = 100}));
  bench.turns(60);
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(read(readers[static_cast<std::size_t>(i)]).text, "nonce-" + std::to_string(i));
}

TEST(EngineLoop, NChoicesShareOnePrefillAndEndOnce) {
  Bench bench({.script = script("echo\n")});
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
  Bench bench({}, limits);
  auto reader = bench.ask({.prompt = std::string(34, 'x'), .max_tokens = 1});
  bench.turns(3);
  EXPECT_TRUE(read(reader).text.empty());
  bench.turns(1);
  EXPECT_EQ(read(reader).text, "token ");
}

TEST(EngineLoop, ALongPromptDoesNotStopTheOthers) {
  Limits limits;
  limits.max_step_tokens = 10;
  Bench bench({}, limits);
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
  Bench bench({}, limits);
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
  Bench bench;
  auto reader = bench.ask({.max_tokens = 100});
  EXPECT_EQ(bench.admission.load().waiting, 1U);
  bench.turns(1);
  EXPECT_EQ(bench.admission.load().waiting, 0U);
  EXPECT_EQ(bench.admission.load().running, 1U);
}

// Cancellation, in every phase.

TEST(EngineLoop, AReaderDroppedBeforeItsRequestIsLookedAtIsReaped) {
  Bench bench;
  { auto reader = bench.ask({}); }
  EXPECT_FALSE(bench.loop.turn());
  EXPECT_EQ(bench.metric("sluice_requests_ended_total{how=\"cancelled\"}"), "1");
  EXPECT_EQ(bench.metric("sluice_steps_total"), "0");
  EXPECT_EQ(bench.admission.load().waiting, 0U);
}

TEST(EngineLoop, AReaderDroppedInTheQueueIsReapedUnrun) {
  Limits limits;
  limits.max_sequences = 1;
  Bench bench({}, limits);
  auto running = bench.ask({.max_tokens = 100});
  {
    auto queued = bench.ask({});
    bench.turns(1);
  }
  bench.turns(1);
  EXPECT_EQ(bench.admission.load().waiting, 0U);
  EXPECT_EQ(bench.metric("sluice_prompt_tokens_total"), "3");
}

TEST(EngineLoop, AReaderDroppedInPrefillFreesItsKvBeforeTheNextStep) {
  Limits limits;
  limits.max_step_tokens = 10;
  Bench bench({}, limits);
  {
    auto reader = bench.ask({.prompt = std::string(1000, 'x')});
    bench.turns(3);
    EXPECT_EQ(bench.engine.kv_used(), 30U);
  }
  EXPECT_FALSE(bench.loop.turn());
  EXPECT_EQ(bench.engine.kv_used(), 0U);
}

TEST(EngineLoop, AReaderDroppedWhileDecodingFreesItsKvBeforeTheNextStep) {
  Bench bench;
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

TEST(EngineLoop, AReaderDroppedWhileParkedFreesItsKv) {
  Limits limits;
  limits.stream_deltas = 2;
  Bench bench({}, limits);
  {
    auto reader = bench.ask({.max_tokens = 100});
    bench.turns(5);
    EXPECT_EQ(bench.admission.load().parked, 1U);
  }
  EXPECT_FALSE(bench.loop.turn());
  EXPECT_EQ(bench.engine.kv_used(), 0U);
  EXPECT_EQ(bench.admission.load().parked, 0U);
}

TEST(EngineLoop, APassThatNobodyWantsIsAborted) {
  Bench bench({.script = script("block\n")});
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

TEST(EngineLoop, AThousandCancelsLeaveNoTrace) {
  Limits limits;
  limits.max_sequences = 8;
  Bench bench({}, limits);
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

TEST(EngineLoop, ADeadlineEndsARunningRequestBeforeTheNextStep) {
  Bench bench;
  auto reader = bench.ask({.max_tokens = 100, .deadline = bench.clock.now() + milliseconds(50)});
  bench.turns(3);
  bench.clock.advance(milliseconds(50));
  EXPECT_FALSE(bench.loop.turn());
  const Got got = read(reader);
  EXPECT_EQ(code(got), Code::kDeadlineExceeded);
  EXPECT_EQ(got.tokens, 3U) << "what was there is still told";
}

TEST(EngineLoop, AnExpiredRequestInTheQueueNeverReachesTheModel) {
  Limits limits;
  limits.max_sequences = 1;
  Bench bench({}, limits);
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

TEST(EngineLoop, AFullStreamIsParkedAndTheOthersGoOn) {
  Limits limits;
  limits.stream_deltas = 4;
  Bench bench({}, limits);
  auto slow = bench.ask({.max_tokens = 100});
  auto quick = bench.ask({.max_tokens = 100});
  for (int i = 0; i < 20; ++i) {
    bench.turns(1);
    EXPECT_EQ(read(quick).tokens, 1U);
  }
  EXPECT_EQ(bench.admission.load().parked, 1U);
  EXPECT_EQ(read(slow).tokens, 4U) << "no further than the bound";
}

TEST(EngineLoop, AParkedRequestGoesOnWhenReadAndLosesNothing) {
  Limits limits;
  limits.stream_deltas = 4;
  Bench bench({.script = script("echo\n")}, limits);
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

TEST(EngineLoop, ParkedBeyondTheLimitEndsAsNotReading) {
  Limits limits;
  limits.stream_deltas = 2;
  limits.park_limit = milliseconds(500);
  Bench bench({}, limits);
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

TEST(EngineLoop, WhenOthersWaitALongParkedRequestGivesUpItsSlotAndStillLosesNothing) {
  Limits limits;
  limits.stream_deltas = 2;
  limits.max_sequences = 1;
  Bench bench({.script = script("echo\n")}, limits);
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

TEST(EngineLoop, WithoutKvSpaceTheYoungestIsPutBackAndNothingFails) {
  Bench bench({.script = script("echo\n"), .kv_tokens = 40});
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

TEST(EngineLoop, ARequestThatCanNeverFitEndsWithAClearError) {
  Bench bench({.kv_tokens = 10});
  auto reader = bench.ask({.prompt = std::string(20, 'x')});
  auto next = bench.ask({.max_tokens = 1});
  bench.turns(5);
  EXPECT_EQ(code(read(reader)), Code::kResourceExhausted);
  EXPECT_EQ(read(next).tokens, 1U);
}

// Failures.

TEST(EngineLoop, ASequenceThatFailsHurtsNoOther) {
  Bench bench({.script = script("piece \"a\"\nfail \"no luck\"\n")});
  auto reader = bench.ask({.max_tokens = 100});
  auto lucky = bench.ask({.max_tokens = 1});
  bench.turns(3);
  const Got got = read(reader);
  EXPECT_EQ(got.text, "a");
  EXPECT_EQ(code(got), Code::kInternal);
  EXPECT_TRUE(*read(lucky).end);
}

TEST(EngineLoop, ABrokenPassEndsItsRowsAndTheLoopGoesOn) {
  Bench bench({.script = script("break \"out of order\"\npiece \"a\"\n")});
  auto reader = bench.ask({.max_tokens = 1});
  bench.turns(2);
  EXPECT_EQ(code(read(reader)), Code::kInternal);
  EXPECT_EQ(bench.metric("sluice_failed_steps_total"), "1");
  EXPECT_EQ(bench.engine.kv_used(), 0U);
}

TEST(EngineLoop, StoppingEndsWhatIsLeftAsUnavailable) {
  Bench bench({.script = script("hang\n")});
  auto reader = bench.ask({});
  std::thread engine_thread([&] { bench.loop.run(); });
  bench.admission.close();
  bench.loop.request_stop();
  engine_thread.join();
  EXPECT_EQ(code(read(reader)), Code::kUnavailable);
}

TEST(EngineLoop, RunsByItselfUntilItsRequestsAreDone) {
  Bench bench;
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
