// GatewayMetrics: what the gateway counts of requests, above their connections and replicas
// (http_metrics.h, replica_pool.h). Made once at start. Bounded: routes × outcomes are fixed.
// Thread: any.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/metrics.h"
#include "gateway/gateway_limits.h"

namespace sluice {

enum class Route {
  kChat,
  kCompletions,
  kResponses,
  kEmbeddings,
  kTokenize,
  kModels,
  kModel,
  kHealth,
  kReady,
  kMetrics,
  kOther,
};
inline constexpr std::size_t kRoutes = static_cast<std::size_t>(Route::kOther) + 1;

// The pattern of its path, for logs and labels.
[[nodiscard]] const char* route_name(Route route) noexcept;

struct GatewayMetrics {
  GatewayMetrics(Metrics& metrics, const GatewayLimits& limits);

  // A request ended with this HTTP status; 499: its client was gone.
  void count(Route route, int status) noexcept;

  Gauge running;    // requests under way
  Gauge streaming;  // of them, streams
  Counter refused;  // beyond --max-running-requests
  Counter cut;      // streams that ended with an error after their first byte
  Counter keepalives;
  Counter unknown_fields;
  Counter prompt_tokens, completion_tokens, cached_tokens;
  Histogram ttft_seconds, duration_seconds, overhead_seconds;

 private:
  std::array<std::vector<Counter>, kRoutes> requests_;  // by the outcome's place in a table
};

}  // namespace sluice
