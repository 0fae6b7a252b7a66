// LoopBench: for the engine loop's tests, a replica's middle without wires: the test is wire and,
// with turns(), engine thread. Thread: one, but for what a test runs by itself.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/concat.h"
#include "engine/scripted_engine.h"
#include "scheduler/engine_loop.h"

namespace sluice {

using std::chrono::milliseconds;

inline Script script(const std::string& text) {
  auto parsed = Script::parse(text);
  CHECK(parsed, "the test's own script");
  return *parsed;
}

struct Ask {
  std::string prompt = "hi";
  std::int32_t max_tokens = 4;
  std::uint32_t n = 1;
  std::int32_t priority = 0;
  std::string flow = {};
  std::int32_t min_tokens = 0;
  TimePoint deadline = kForever;
  std::vector<std::string> stop = {};
  std::optional<std::int32_t> top_logprobs = std::nullopt;
  Caching caching = {};
};

struct LoopBench {
  explicit LoopBench(ScriptedOptions options = {}, Limits bench_limits = {})
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
    submission.flow = ask.flow;
    submission.caching = ask.caching;
    submission.deadline = ask.deadline;
    submission.wire = wire;
    auto reader = admission.submit(std::move(*ticket), std::move(submission));
    CHECK(reader, "the test stays within the bounds");
    return std::move(*reader);
  }

  void turns(int count) {
    for (int i = 0; i < count; ++i) (void)loop.turn();
  }

  std::string metric(const std::string& line_begin) {
    const std::string text = concat('\n', metrics.text());
    const std::size_t at = text.find(concat('\n', line_begin, ' '));
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

inline Got read(StreamReader& reader, std::uint32_t index = 0) {
  Got got;
  got.read(reader, index);
  return got;
}

inline Code code(const Got& got) { return got.end && !*got.end ? got.end->error().code : Code{0}; }

}  // namespace sluice
