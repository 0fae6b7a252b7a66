// ReplicaPool: the replicas that this gateway knows, how they are (grpc.health.v1 Watch, WatchLoad,
// the outcome of requests), what they serve (Describe), and which of them takes a request next. The
// decision itself is a pure function (replica_choice.h). Names are resolved again every
// --resolve-interval-ms; replicas come and go. Bounded by the addresses given and what they resolve
// to. Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "contract/generation.h"
#include "gateway/gateway_limits.h"
#include "gateway/routing.h"

namespace grpc {
class Channel;
}

namespace sluice {

enum class ReplicaId : std::uint32_t {};  // never given twice within a process

enum class PoolPolicy { kLeastLoad, kAffinity, kRoundRobin };

struct ReplicaTls {
  std::string authority;  // PEM files; all empty: plaintext
  std::string certificate;
  std::string key;
  std::string server_name;  // instead of the address's host
};

struct PoolOptions {
  // HOST:PORT, optionally followed by ;label=value… (name, retain). A host with several addresses
  // is several replicas.
  std::vector<std::string> replicas;
  std::string api_key;  // of this gateway, at those replicas
  // A replica in this process (`sluice up`): its in-process channel, null without one, and this
  // gateway's key there.
  std::shared_ptr<grpc::Channel> local;
  std::string local_key;
  ReplicaTls tls;
  PoolPolicy policy = PoolPolicy::kAffinity;
};

struct ModelEntry {
  std::string name;
  std::vector<std::string> aliases;
  std::uint32_t context_tokens = 0;
  std::uint32_t embedding_size = 0;  // 0: it makes none, or never said
};

class ReplicaPool {
 public:
  struct Choice {
    ReplicaId replica{};
    std::string name;   // for x-served-by
    std::string model;  // that of Routing::models which it serves
    RoutingReason reason{};
  };

  // Errors: kInvalidArgument (an address or label), kNotFound (a TLS file).
  [[nodiscard]] static Result<std::unique_ptr<ReplicaPool>> start(const PoolOptions& options,
                                                                  const GatewayLimits& limits,
                                                                  Metrics& metrics);
  ~ReplicaPool();

  // Never one of `tried`. Errors: kNotFound (no replica serves any of the models), kUnavailable
  // (none that may take it is healthy), kResourceExhausted (`tried` is not empty and the retry
  // budget is spent).
  [[nodiscard]] Result<Choice> choose(const Routing& routing, std::span<const ReplicaId> tried);

  // Of all healthy replicas, each name once, sorted.
  [[nodiscard]] std::vector<ModelEntry> models() const;
  // Whether any replica takes requests.
  [[nodiscard]] bool ready() const noexcept;
  // Waits for that. False: the time came first.
  bool wait_ready(TimePoint until) noexcept;

  struct State;  // shared with the links of each I/O thread

 private:
  friend class ReplicaLinks;
  explicit ReplicaPool(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
