// Which replica takes a request: a pure function of what is known about each, of what the client
// asked for, and of where the request was tried already. Bounded by the candidates. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "contract/generation.h"
#include "gateway/ejection.h"
#include "gateway/replica_pool.h"
#include "gateway/routing.h"

namespace sluice {

// How far above the mean load a replica may be and still get the requests of its sessions.
inline constexpr double kAffinityStretch = 1.25;

// What changes rarely, and then as a whole.
struct ReplicaFacts {
  ReplicaId id{};
  std::string name;
  std::vector<std::string> labels;  // values, and its address: what a client may call it besides
  std::string quantization;         // "": not known
  bool retains_nothing = false;     // labelled retain=none
  std::optional<std::vector<ModelEntry>> models;  // absent: it never said; empty: it takes any
};

struct Candidate {
  const ReplicaFacts* facts = nullptr;
  bool healthy = false;
  Standing standing = Standing::kGood;
  std::uint32_t in_flight = 0;   // from this gateway
  Load load;                     // as it said last
  std::optional<Duration> ttft;  // how long its first tokens take, smoothed
};

struct ReplicaChoice {
  std::size_t candidate = 0;
  std::string model;
  RoutingReason reason{};
};

// `turn` rises by one with each request; among equals it decides. An ejected replica is taken only
// when no other may take the request. Errors: kNotFound, kUnavailable, as ReplicaPool::choose.
[[nodiscard]] Result<ReplicaChoice> choose_replica(std::span<const Candidate> candidates,
                                                   const Routing& routing, PoolPolicy policy,
                                                   std::span<const ReplicaId> tried,
                                                   std::uint64_t turn);

}  // namespace sluice
