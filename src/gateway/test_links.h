// TestLinks: a pool and the links of one I/O thread, which is the test's own thread, beside real
// replicas with scripted engines. Nothing sleeps: the loop runs until what was asked for has come.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/scripted_engine.h"
#include "gateway/replica_links.h"
#include "gateway/replica_pool.h"
#include "gateway/test_reading.h"
#include "replica/replica.h"
// behind asio.h
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>

namespace sluice {

// At a free port, or at `address` again. `script` empty: "token " for ever.
inline std::unique_ptr<Replica> start_replica(Clock& clock, const std::string& script,
                                              const std::string& address = "127.0.0.1:0") {
  ScriptedOptions scripted;
  if (!script.empty()) {
    auto parsed = Script::parse(script);
    EXPECT_TRUE(parsed) << parsed.error().message;
    scripted.script = std::move(*parsed);
  }
  ReplicaOptions options;
  options.listen = address;
  options.metrics_listen = "off";
  auto replica = Replica::start(std::make_unique<ScriptedEngine>(scripted, clock), options);
  EXPECT_TRUE(replica) << replica.error().message;
  EXPECT_TRUE((*replica)->warm_up(false));
  return std::move(*replica);
}

struct Answer {
  std::string text;
  std::uint32_t tokens = 0;
  std::uint32_t deltas = 0;
  std::optional<Usage> usage;
  Result<void> end;
};

class TestLinks {
 public:
  TestLinks(std::vector<std::string> addresses, const GatewayLimits& limits,
            PoolPolicy policy = PoolPolicy::kLeastLoad) {
    PoolOptions options;
    options.replicas = std::move(addresses);
    options.policy = policy;
    auto pool = ReplicaPool::start(options, limits, metrics_);
    EXPECT_TRUE(pool) << pool.error().message;
    pool_ = std::move(*pool);
    links_ = std::make_unique<ReplicaLinks>(*pool_, io_, limits);
  }

  [[nodiscard]] ReplicaPool& pool() { return *pool_; }
  [[nodiscard]] ReplicaLinks& links() { return *links_; }
  [[nodiscard]] asio::io_context& io() { return io_; }
  [[nodiscard]] Metrics& metrics() { return metrics_; }

  void wait_until_ready(bool ready = true) {
    while (pool_->ready() != ready) std::this_thread::yield();
  }

  [[nodiscard]] static Routing routing() {
    Routing routing;
    routing.models = {"local"};
    return routing;
  }
  // Waits until there is one.
  [[nodiscard]] ReplicaId choose() {
    while (true) {
      const auto choice = pool_->choose(routing(), {});
      if (choice) return choice->replica;
      std::this_thread::yield();
    }
  }

  // Runs the loop until the task is done.
  template <typename T>
  [[nodiscard]] T run(Task<T> task) {
    std::optional<T> result;
    asio::co_spawn(io_, std::move(task), [&](std::exception_ptr thrown, T value) {
      EXPECT_FALSE(thrown);
      result = std::move(value);
    });
    while (!result) io_.run_one();
    return std::move(*result);
  }
  // Runs what is ready.
  void turn() { io_.poll(); }

  [[nodiscard]] static GenerationRequest request(std::int32_t max_tokens) {
    GenerationRequest request;
    request.model = "local";
    request.prompt.raw = "hello";
    request.stopping.max_tokens = max_tokens;
    return request;
  }

  [[nodiscard]] static Task<Answer> read_all(ReadStream stream) {
    Answer answer;
    while (true) {
      Arrival arrival = co_await stream.next();
      for (ReceivedDelta& received : arrival.deltas) {
        answer.text += received.delta.bytes;
        answer.tokens += received.delta.tokens;
        ++answer.deltas;
        if (received.usage) answer.usage = received.usage;
      }
      if (!arrival.end) continue;
      answer.end = std::move(*arrival.end);
      co_return answer;
    }
  }
  [[nodiscard]] ReadStream open(ReplicaId replica, const GenerationRequest& request,
                                const CallContext& context = {}) {
    return ReadStream(
        [&](WakeUp& reader) { return links_->generate(replica, request, context, reader); });
  }
  [[nodiscard]] Answer generate(const GenerationRequest& request, const CallContext& context = {}) {
    return run(read_all(open(choose(), request, context)));
  }

 private:
  Metrics metrics_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::unique_ptr<ReplicaPool> pool_;
  std::unique_ptr<ReplicaLinks> links_;
};

}  // namespace sluice
