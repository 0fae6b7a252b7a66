// visit_gateway_limits: every bound of the gateway by its flag, for whatever goes through all of
// them (flags, config file). The flag of a duration ends in -ms; a bound without a unit in its flag
// counts what `unit` says.
// Thread: any.
#pragma once

#include "gateway/gateway_limits.h"

namespace sluice {

// visit(flag without its dashes, the field, its unit, what it bounds). `LimitsType`: GatewayLimits
// or const GatewayLimits.
template <typename LimitsType, typename Visitor>
void visit_gateway_limits(LimitsType& limits, Visitor&& visit) {
  visit("max-connections", limits.max_connections, "connections", "Clients' connections");
  visit("max-header-bytes", limits.max_header_bytes, "bytes",
        "The head of one request, and what is held of the next while one is answered");
  visit("max-body-bytes", limits.max_body_bytes, "bytes", "The body of one request");
  visit("max-held-body-bytes", limits.max_held_body_bytes, "bytes",
        "Bodies of 64 KiB and more of requests that are not answered yet, together");
  visit("header-timeout-ms", limits.header_timeout, "ms",
        "From a request's first byte to the end of its head; a TLS handshake");
  visit("body-timeout-ms", limits.body_timeout, "ms", "Without a byte of the body");
  visit("idle-timeout-ms", limits.idle_timeout, "ms", "Between two requests of a connection");
  visit("write-timeout-ms", limits.write_timeout, "ms",
        "A write of which the client takes nothing");
  visit("http-drain-grace-ms", limits.http_drain_grace, "ms",
        "How long running answers may go on in a drain");
  visit("http-drain-notice-ms", limits.http_drain_notice, "ms",
        "How long a drain answers 503, within its grace, even if nothing runs");

  visit("max-json-depth", limits.max_json_depth, "levels", "Nesting of a request's JSON");
  visit("max-json-values", limits.max_json_values, "values", "Values in a request's JSON");
  visit("max-choices", limits.max_choices, "choices",
        "Choices of one request, its prompts times n");
  visit("max-running-requests", limits.max_running_requests, "requests",
        "Requests that are being answered");
  visit("request-timeout-ms", limits.request_timeout, "ms",
        "A request whose client sets no time-out");
  visit("commit-after-ms", limits.commit_after, "ms",
        "A streamed answer without a token begins after this");
  visit("sse-keepalive-ms", limits.sse_keepalive, "ms",
        "Between two comments on a silent stream; 0: none");

  visit("credit-deltas", limits.credit_deltas, "deltas",
        "What a replica may send ahead for one request");
  visit("credit-bytes", limits.credit_bytes, "bytes", "and its bytes");
  visit("large-request-bytes", limits.large_request_bytes, "bytes",
        "A larger request goes as a call of its own");
  visit("max-attempts", limits.max_attempts, "replicas", "Replicas that one request is tried on");
  visit("retry-budget-percent", limits.retry_budget_percent, "percent",
        "Retries per hundred requests, over the last ten seconds");
  visit("calls-per-channel", limits.calls_per_channel, "calls",
        "Another channel to a replica is opened above this");
  visit("max-channels", limits.max_channels, "channels", "Per replica and I/O thread");
  visit("eject-time-ms", limits.eject_time, "ms",
        "A failing replica is left alone this long, then tried with one request");
  visit("resolve-interval-ms", limits.resolve_interval, "ms",
        "Between two look-ups of the replicas' names");
}

}  // namespace sluice
