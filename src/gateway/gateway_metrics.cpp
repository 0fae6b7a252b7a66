#include "gateway/gateway_metrics.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr const char* kRouteNames[kRoutes] = {"/v1/chat/completions",
                                              "/v1/completions",
                                              "/v1/responses",
                                              "/v1/embeddings",
                                              "/tokenize",
                                              "/v1/models",
                                              "/v1/models/{id}",
                                              "/health",
                                              "/readyz",
                                              "/metrics",
                                              "other"};

constexpr int kClientGone = 499;
constexpr const char* kOutcomeNames[] = {"2xx", "3xx", "4xx", "5xx", "499"};

std::size_t outcome_of(int status) noexcept {
  if (status == kClientGone) return 4;
  return static_cast<std::size_t>(std::clamp(status / 100, 2, 5) - 2);
}

Histogram seconds(Metrics& metrics, const char* name, const char* help) {
  return metrics.histogram(name, help, Metrics::seconds_bounds());
}

}  // namespace

const char* route_name(Route route) noexcept {
  return kRouteNames[static_cast<std::size_t>(route)];
}

GatewayMetrics::GatewayMetrics(Metrics& m, const GatewayLimits& limits)
    : running(m.gauge("sluice_gateway_running_requests", "Requests under way")),
      streaming(m.gauge("sluice_gateway_open_streams", "Of them, streamed answers")),
      refused(m.counter("sluice_gateway_requests_refused_total",
                        "Requests refused by --max-running-requests")),
      cut(m.counter("sluice_gateway_streams_cut_total",
                    "Streams that ended with an error after their first byte")),
      keepalives(m.counter("sluice_gateway_keepalives_total", "Comments sent on silent streams")),
      unknown_fields(m.counter("sluice_gateway_unknown_fields_total",
                               "Fields of requests that nobody here knows, ignored")),
      prompt_tokens(m.counter("sluice_gateway_prompt_tokens_total", "Prompt tokens of answers")),
      completion_tokens(
          m.counter("sluice_gateway_completion_tokens_total", "Tokens generated for answers")),
      cached_tokens(m.counter("sluice_gateway_cached_tokens_total",
                              "Prompt tokens that replicas found in their cache")),
      ttft_seconds(seconds(m, "sluice_gateway_ttft_seconds",
                           "From a request's first byte to its answer's first token")),
      duration_seconds(seconds(m, "sluice_gateway_duration_seconds",
                               "From a request's first byte to its answer's last")),
      overhead_seconds(seconds(m, "sluice_gateway_overhead_seconds",
                               "Of the time to the first token, what the gateway itself took")) {
  for (std::size_t route = 0; route < kRoutes; ++route) {
    for (const char* outcome : kOutcomeNames) {
      requests_[route].push_back(m.counter("sluice_gateway_requests_total",
                                           "Requests that ended, by route and status",
                                           {{"route", kRouteNames[route]}, {"status", outcome}}));
    }
  }
  m.gauge("sluice_gateway_running_requests_limit", "--max-running-requests")
      .set(limits.max_running_requests);
}

void GatewayMetrics::count(Route route, int status) noexcept {
  requests_[static_cast<std::size_t>(route)][outcome_of(status)].add();
}

}  // namespace sluice
