#include "load/load_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sluice {
namespace {

using namespace std::chrono_literals;

struct FakeServer {
  Duration first_token = 1ms;
  Duration next_token = 1ms;
  std::string error;       // instead of an answer
  bool hangs = false;      // after the first token, for ever
  Duration stall_begin{};  // from the first request on; nothing comes before stall_end
  Duration stall_end{};
  TimePoint begin = kForever;
  std::size_t running = 0;
  std::size_t most_running = 0;

  // Moves what would come within the stall behind it.
  Duration from_now(Duration wait) const {
    const Duration at = std::chrono::steady_clock::now() - begin;
    if (at + wait < stall_begin || at >= stall_end) return wait;
    return stall_end - at + wait;
  }
};

// Everything happens on the run's thread.
class FakeStream final : public LoadStream {
 public:
  FakeStream(std::size_t index, LoadEvents& events, FakeServer& server)
      : LoadStream(index, events), server_(server) {}

 private:
  void start(PlannedRequest& planned) override {
    server_.begin = std::min(server_.begin, std::chrono::steady_clock::now());
    server_.most_running = std::max(server_.most_running, ++server_.running);
    left_ = *planned.request.stopping.max_tokens;
    ++id_;
    if (!server_.error.empty()) return finish_after(1ms, server_.error);
    next(server_.first_token);
  }

  void cancel(std::uint64_t) noexcept override { finish_after(0ms, "CANCELLED"); }

  void next(Duration wait) {
    events().after(server_.from_now(wait), [this, id = id_] {
      if (id != id_) return;
      const bool cancelled = receive(1);
      if (cancelled) return finish("CANCELLED");
      if (server_.hangs) return;
      --left_ == 0 ? finish({}) : next(server_.next_token);
    });
  }

  void finish_after(Duration wait, const std::string& error) {
    events().after(wait, [this, id = id_, error] {
      if (id == id_) finish(error);
    });
  }

  void finish(const std::string& error) {
    ++id_;
    --server_.running;
    end({.error = error, .prompt_tokens = 3, .queued = 2ms});
  }

  FakeServer& server_;
  std::int32_t left_ = 0;
  std::uint64_t id_ = 0;
};

class FakeTarget final : public LoadTarget {
 public:
  explicit FakeTarget(FakeServer& server) : server_(server) {}
  Result<void> connect() override { return {}; }
  void stop() noexcept override {}
  std::unique_ptr<LoadStream> make_stream(std::size_t index, LoadEvents& events) override {
    return std::make_unique<FakeStream>(index, events, server_);
  }

 private:
  FakeServer& server_;
};

LoadOptions options_of(std::uint64_t requests, std::uint32_t tokens) {
  LoadOptions options;
  options.requests = requests;
  options.warm_up_share = 0;
  options.concurrency = 4;
  options.workload.output_tokens = LengthDistribution(tokens);
  return options;
}

LoadResult run(const LoadOptions& options, FakeServer& server) {
  FakeTarget target(server);
  const auto workload = Workload::make(options.workload);
  LoadRun load(options, target, *workload);
  return load.run([](const LiveFigures&) {});
}

TEST(LoadRun, ClosedLoopAsksForEachRequestOnceWithAsManyUsers) {
  FakeServer server;
  const LoadResult result = run(options_of(50, 3), server);
  EXPECT_EQ(result.counts.succeeded, 50U);
  EXPECT_EQ(server.most_running, 4U);
  EXPECT_EQ(result.streams, 4U);
  EXPECT_EQ(result.counts.tokens, 150U);
  EXPECT_EQ(result.counts.completion_tokens, 150U);
  EXPECT_EQ(result.counts.prompt_tokens, 150U);
  EXPECT_EQ(result.counts.ttft.count(), 50U);
  EXPECT_EQ(result.counts.itl.count(), 100U);
  EXPECT_EQ(result.counts.total.count(), 50U);
  EXPECT_GE(result.counts.total.percentile_us(0), 3000);
  EXPECT_EQ(result.counts.queue.percentile_us(50), 2000);
}

TEST(LoadRun, WarmUpIsNotCounted) {
  FakeServer server;
  LoadOptions options = options_of(50, 2);
  options.warm_up_share = 0.2;
  const LoadResult result = run(options, server);
  EXPECT_EQ(result.counts.succeeded, 40U);
  EXPECT_EQ(result.counts.ttft.count(), 40U);
  EXPECT_GT(result.warm_up_seconds, 0);
}

TEST(LoadRun, GapsOfStreamsOlderThanTheWindowCount) {
  FakeServer server;
  LoadOptions options = options_of(0, 1'000'000);
  options.duration = 200ms;
  options.grace = 0ms;
  options.warm_up_share = 0.5;
  const LoadResult result = run(options, server);
  EXPECT_EQ(result.counts.ttft.count(), 0U);
  EXPECT_GT(result.counts.itl.count(), 20U);
  EXPECT_LT(result.counts.itl.count(), 420U) << "of four streams for half the time";
}

// Coordinated omission: while the server stands still for 300 ms, 60 more requests are due. A
// closed loop asks for one and waits; what an open loop would have asked for is in its percentiles,
// though it has no more streams than the closed one.
TEST(LoadRun, StallShowsInTheOpenLoopsPercentiles) {
  LoadOptions options = options_of(200, 1);
  options.concurrency = options.max_streams = 1;
  FakeServer closed{.stall_begin = 100ms, .stall_end = 400ms};
  const LoadResult omitted = run(options, closed);
  EXPECT_GE(omitted.counts.ttft.max_us(), 200'000U);
  EXPECT_LT(omitted.counts.ttft.percentile_us(95), 100'000);

  options.rate = 200;
  options.arrivals = ArrivalProcess::kConstant;
  FakeServer open{.stall_begin = 100ms, .stall_end = 400ms};
  const LoadResult told = run(options, open);
  EXPECT_EQ(told.counts.succeeded, 200U);
  EXPECT_EQ(told.streams, 1U);
  EXPECT_GE(told.counts.ttft.percentile_us(99), 250'000);
  EXPECT_GE(told.counts.ttft.percentile_us(90), 150'000);
  EXPECT_GE(told.counts.total.percentile_us(99), 250'000);
  EXPECT_GE(told.held_arrivals, 1U);
}

TEST(LoadRun, OpenLoopKeepsItsRate) {
  FakeServer server{.first_token = 20ms};
  LoadOptions options = options_of(0, 1);
  options.duration = 500ms;
  options.rate = 200;
  options.arrivals = ArrivalProcess::kConstant;
  const LoadResult result = run(options, server);
  EXPECT_EQ(result.counts.succeeded, 100U);
  EXPECT_NEAR(result.window_seconds, 0.5, 1e-6);
  EXPECT_EQ(result.counts.lateness.count(), 100U);
}

TEST(LoadRun, WhatNeverEndsCountsWithTheTimeItTook) {
  FakeServer server{.hangs = true};
  LoadOptions options = options_of(0, 5);
  options.duration = 100ms;
  options.grace = 100ms;
  const LoadResult result = run(options, server);
  EXPECT_EQ(result.counts.unfinished, 4U);
  EXPECT_EQ(result.counts.failed, 0U);
  EXPECT_EQ(result.counts.total.count(), 4U);
  EXPECT_GE(result.counts.total.percentile_us(0), 190'000);
}

TEST(LoadRun, WhatWasDueAndNeverBegunCounts) {
  FakeServer server{.hangs = true};
  LoadOptions options = options_of(0, 5);
  options.duration = 200ms;
  options.grace = 0ms;
  options.rate = 100;
  options.max_streams = 1;
  options.arrivals = ArrivalProcess::kConstant;
  const LoadResult result = run(options, server);
  EXPECT_EQ(result.counts.not_started, 19U);
  EXPECT_EQ(result.counts.unfinished, 1U);
  EXPECT_EQ(result.counts.ttft.count(), 20U);
  EXPECT_GE(result.counts.ttft.percentile_us(50), 80'000);
}

TEST(LoadRun, RefusalsAreCountedByTheirCodeAndImproveNoLatency) {
  FakeServer server{.error = "RESOURCE_EXHAUSTED"};
  LoadOptions options = options_of(12, 5);
  options.rate = 1000;
  const LoadResult result = run(options, server);
  EXPECT_EQ(result.counts.failed, 12U);
  EXPECT_EQ(result.counts.errors.at("RESOURCE_EXHAUSTED"), 12U);
  EXPECT_EQ(result.counts.ttft.count(), 0U);
  EXPECT_EQ(result.counts.total.count(), 0U);
}

TEST(LoadRun, CancelsAreNoErrors) {
  FakeServer server;
  LoadOptions options = options_of(20, 10);
  options.workload.cancel_share = 1;
  options.workload.cancel_after_tokens = 3;
  const LoadResult result = run(options, server);
  EXPECT_EQ(result.counts.cancelled, 20U);
  EXPECT_EQ(result.counts.failed, 0U);
  EXPECT_EQ(result.counts.tokens, 60U);
  options.workload.cancel_after_tokens = 0;
  options.workload.cancel_after = 5ms;
  FakeServer slow{.first_token = 10s};
  EXPECT_EQ(run(options, slow).counts.cancelled, 20U);
}

TEST(LoadRun, GoodputHoldsRequestsToTheirTargets) {
  FakeServer server{.first_token = 30ms, .next_token = 20ms};
  LoadOptions options = options_of(8, 3);
  EXPECT_EQ(run(options, server).counts.good, 8U);
  options.target_ttft_ms = 10;
  EXPECT_EQ(run(options, server).counts.good, 0U);
  options.target_ttft_ms = 10'000;
  options.target_itl_ms = 10;
  EXPECT_EQ(run(options, server).counts.good, 0U);
  options.target_itl_ms = 10'000;
  EXPECT_EQ(run(options, server).counts.good, 8U);
}

TEST(LoadRun, StopEndsTheRunWithWhatThereIs) {
  FakeServer server;
  LoadOptions options = options_of(1'000'000, 1);
  FakeTarget target(server);
  const auto workload = Workload::make(options.workload);
  LoadRun load(options, target, *workload);
  load.stop();
  const LoadResult result = load.run([](const LiveFigures&) {});
  EXPECT_TRUE(result.interrupted);
  EXPECT_LE(result.counts.succeeded, 8U);
}

}  // namespace
}  // namespace sluice
