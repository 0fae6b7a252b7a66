#include "gateway/http_metrics.h"

#include <string>
#include <utility>

namespace sluice {

HttpMetrics::HttpMetrics(Metrics& metrics)
    : connections(metrics.gauge("sluice_http_connections", "Clients' connections")),
      connections_limit(metrics.gauge("sluice_http_connections_limit", "The most of them")),
      accepted(metrics.counter("sluice_http_connections_total", "Connections accepted")),
      requests(metrics.counter("sluice_http_requests_total", "Requests handed to the router")),
      clients_gone(metrics.counter("sluice_http_clients_gone_total",
                                   "Clients that went while their request was being answered")),
      received_bytes(metrics.counter("sluice_http_received_bytes_total", "Bytes of requests")),
      sent_bytes(metrics.counter("sluice_http_sent_bytes_total", "Bytes of answers")) {
  const std::pair<HttpTimeout, const char*> kinds[] = {{HttpTimeout::kHandshake, "handshake"},
                                                       {HttpTimeout::kHeader, "header"},
                                                       {HttpTimeout::kBody, "body"},
                                                       {HttpTimeout::kIdle, "idle"},
                                                       {HttpTimeout::kWrite, "write"}};
  for (const auto& [kind, name] : kinds) {
    timeouts_.emplace(kind, metrics.counter("sluice_http_timeouts_total",
                                            "Connections that were too slow", {{"kind", name}}));
  }
  const std::pair<ConnectionRefusal, const char*> reasons[] = {
      {ConnectionRefusal::kLimit, "limit"},
      {ConnectionRefusal::kDescriptors, "descriptors"},
      {ConnectionRefusal::kTls, "tls"}};
  for (const auto& [why, name] : reasons) {
    refused_.emplace(why, metrics.counter("sluice_http_connections_refused_total",
                                          "Connections not served", {{"why", name}}));
  }
  for (const int status : {400, 408, 413, 414, 431, 500, 501, 503, 505}) {
    statuses_.emplace(status, metrics.counter("sluice_http_requests_refused_total",
                                              "Requests that never reached the router, or got no "
                                              "answer from it (500)",
                                              {{"status", std::to_string(status)}}));
  }
}

void HttpMetrics::timed_out(HttpTimeout kind) noexcept { timeouts_.find(kind)->second.add(); }

void HttpMetrics::connection_refused(ConnectionRefusal why) noexcept {
  refused_.find(why)->second.add();
}

void HttpMetrics::request_refused(int status) noexcept {
  if (const auto found = statuses_.find(status); found != statuses_.end()) found->second.add();
}

}  // namespace sluice
