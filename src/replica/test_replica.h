// TestReplica: both services over a scripted engine and a real gRPC server on the in-process
// channel, for tests. The test is the engine thread: nothing is computed but in step(), or while
// run_engine's thread runs.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "access/keys.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/metrics.h"
#include "engine/scripted_engine.h"
#include "inference.grpc.pb.h"
#include "replica/context.h"
#include "replica/embed_queue.h"
#include "replica/preparer.h"
#include "replica/replica_metrics.h"
#include "replica/service.h"
#include "scheduler/admission.h"
#include "scheduler/engine_loop.h"
#include "stream/delivery.h"
#include "stream/doorbell.h"

namespace sluice {

// A scripted engine whose tokenizer and embedder can be held.
class HeldEngine final : public Engine {
 public:
  HeldEngine(ScriptedOptions options, Clock& clock) : engine_(std::move(options), clock) {}

  void hold_tokenizer() { set_held(true); }
  void release_tokenizer() { set_held(false); }
  // Returns when `calls` calls have come to the tokenizer since the start.
  void wait_for_tokenizer(int calls) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tokenized_ >= calls; });
  }
  [[nodiscard]] int tokenized() const {
    const std::lock_guard lock(mutex_);
    return tokenized_;
  }

  [[nodiscard]] const EngineInfo& info() const noexcept override { return engine_.info(); }
  [[nodiscard]] Result<std::vector<Token>> tokenize(const PromptSource& source) const override {
    std::unique_lock lock(mutex_);
    ++tokenized_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_; });
    return engine_.tokenize(source);
  }
  [[nodiscard]] std::unique_ptr<SamplerState> make_sampler(
      const Sampling& sampling, std::uint32_t index,
      const std::vector<Token>& prompt) const override {
    return engine_.make_sampler(sampling, index, prompt);
  }
  void step(const Batch& batch, const AbortCheck& abort, StepResult& result) override {
    engine_.step(batch, abort, result);
  }
  void release(Slot slot) override { engine_.release(slot); }
  [[nodiscard]] bool copy_prefix(Slot from, Slot to, std::int32_t tokens) override {
    return engine_.copy_prefix(from, to, tokens);
  }
  [[nodiscard]] bool keep_prefix(Slot slot, std::int32_t tokens) override {
    return engine_.keep_prefix(slot, tokens);
  }
  [[nodiscard]] Result<std::vector<float>> embed(const std::vector<Token>& tokens,
                                                 const AbortCheck& abort) override {
    {
      std::unique_lock lock(mutex_);
      ++embedding_;
      changed_.notify_all();
      while (embedder_held_ && !abort()) changed_.wait_for(lock, std::chrono::milliseconds(1));
      if (abort()) return fail(Code::kCancelled, "aborted");
    }
    return engine_.embed(tokens, abort);
  }

  void hold_embedder() {
    const std::lock_guard lock(mutex_);
    embedder_held_ = true;
  }
  // Returns when `calls` calls have come to the embedder since the start.
  void wait_for_embedder(int calls) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return embedding_ >= calls; });
  }

 private:
  void set_held(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }

  ScriptedEngine engine_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int tokenized_ = 0;
  bool held_ = false;
  bool embedder_held_ = false;
  int embedding_ = 0;
};

class TestReplica {
 public:
  explicit TestReplica(const std::string& script = {}, const Limits& limits = {},
                       std::unique_ptr<KeyRing> keys = nullptr)
      : limits_(limits),
        keys_(keys ? std::move(keys) : std::make_unique<KeyRing>()),
        engine_(scripted(script), clock_) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterService(&services_.llm());
    builder.RegisterService(&services_.replica());
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel(grpc::ChannelArguments());
    llm_ = inference::LLM::NewStub(channel_);
    replica_ = inference::Replica::NewStub(channel_);
  }

  ~TestReplica() {
    engine_.release_tokenizer();
    server_->Shutdown(std::chrono::system_clock::now());
    stop_engine();
  }

  [[nodiscard]] inference::LLM::Stub& llm() { return *llm_; }
  [[nodiscard]] inference::Replica::Stub& replica() { return *replica_; }
  [[nodiscard]] std::shared_ptr<grpc::Channel> channel() { return channel_; }
  [[nodiscard]] HeldEngine& engine() { return engine_; }
  [[nodiscard]] Gate& calls() { return calls_; }
  [[nodiscard]] ReplicaMetrics& metrics() { return metrics_; }
  void cut_stuck_calls() { services_.cut_stuck_calls(); }
  [[nodiscard]] Load load() { return admission_.load(); }

  // One turn of the engine's loop. Only without run_engine.
  bool step() { return loop_.turn(); }
  void run_engine() {
    engine_thread_ = std::thread([this] { loop_.run(); });
  }

  // Turns until the condition holds; the test's own time-out is the bound.
  void step_until(const std::function<bool()>& condition) {
    while (!condition()) {
      loop_.turn();
      std::this_thread::yield();
    }
  }

  // Returns when no more than `count` requests are left that a drain would wait for.
  void wait_for_calls(std::size_t count) {
    while (calls_.count() > count) std::this_thread::yield();
  }

  // The grace that Replica/Drain asked for.
  std::optional<std::chrono::milliseconds> drain_grace;

 private:
  static ScriptedOptions scripted(const std::string& script) {
    ScriptedOptions options;
    if (script.empty()) return options;
    auto parsed = Script::parse(script);
    EXPECT_TRUE(parsed) << parsed.error().message;
    options.script = std::move(*parsed);
    return options;
  }

  void stop_engine() {
    admission_.close();
    loop_.request_stop();
    if (engine_thread_.joinable()) {
      engine_thread_.join();
    } else {
      loop_.run();
    }
  }

  const Limits limits_;
  SystemClock clock_;
  Metrics series_;
  ReplicaMetrics metrics_{series_};
  std::unique_ptr<KeyRing> keys_;
  HeldEngine engine_;
  const ServedModel model_{.name = engine_.info().model,
                           .context_tokens = engine_.info().context_tokens,
                           .vocabulary = engine_.info().vocabulary,
                           .longest_piece = engine_.info().longest_piece};
  Doorbell doorbell_{clock_};
  Delivery delivery_;
  Admission admission_{limits_, clock_, doorbell_, series_};
  EngineLoop loop_{engine_, admission_, doorbell_, delivery_, clock_, series_, limits_};
  Preparer preparer_{engine_, admission_, clock_, model_, metrics_, 1};
  EmbedQueue embed_queue_{engine_, clock_, limits_, model_, metrics_};
  Gate calls_;
  const ReplicaContext context_{
      .engine = engine_,
      .admission = admission_,
      .preparer = preparer_,
      .embed_queue = embed_queue_,
      .clock = clock_,
      .limits = limits_,
      .keys = *keys_,
      .metrics = metrics_,
      .calls = calls_,
      .model = model_,
      .start_drain = [this](std::optional<std::chrono::milliseconds> grace) {
        drain_grace = grace;
        return static_cast<std::uint32_t>(calls_.count());
      }};
  Services services_{context_};
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<inference::LLM::Stub> llm_;
  std::unique_ptr<inference::Replica::Stub> replica_;
  std::thread engine_thread_;
};

}  // namespace sluice
