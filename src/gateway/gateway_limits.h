// GatewayLimits: every bound of the gateway, by name, with its default. The flag is the name with
// dashes; docs/back_pressure.md says what happens at each and which metric shows it. Thread: any
// (values).
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice {

struct GatewayLimits {
  // Connections.
  std::uint32_t max_connections = 20'000;  // beyond it a new one is closed at once
  std::uint32_t max_header_bytes = 64 << 10;
  std::uint32_t max_body_bytes = 50 << 20;
  std::uint64_t max_held_body_bytes = std::uint64_t{1} << 30;  // of long bodies, together
  std::chrono::milliseconds header_timeout{
      10'000};  // from a request's first byte to the end of its head
  std::chrono::milliseconds body_timeout{60'000};   // without a byte of the body
  std::chrono::milliseconds idle_timeout{120'000};  // between requests
  std::chrono::milliseconds write_timeout{60'000};  // one write that the client does not take
  std::chrono::milliseconds http_drain_grace{30'000};
  std::chrono::milliseconds http_drain_notice{0};  // a drain is to be seen for as long, at least

  // Requests.
  std::uint32_t max_json_depth = 64;
  std::uint32_t max_json_values = 262'144;  // of a body: a parsed value outgrows its text tenfold
  std::uint32_t max_choices = 128;          // of one request: its prompts times n
  std::uint32_t max_running_requests = 16'384;         // beyond it 503 with Retry-After
  std::chrono::milliseconds request_timeout{600'000};  // where the client says nothing
  std::chrono::milliseconds commit_after{10'000};   // without a token: 200 and keepalive comments
  std::chrono::milliseconds sse_keepalive{10'000};  // between comments on a silent stream; 0: none

  // To the replicas.
  std::uint32_t credit_deltas = 32;             // what a replica may send ahead for one request
  std::uint32_t credit_bytes = 8 << 10;         // bytes of it
  std::uint32_t large_request_bytes = 1 << 20;  // goes as a call of its own, beside the step stream
  std::uint32_t max_attempts = 3;               // replicas that one request is tried on
  std::uint32_t retry_budget_percent =
      20;                                 // retries per hundred requests, over the last ten seconds
  std::uint32_t calls_per_channel = 100;  // another channel is opened above this
  std::uint32_t max_channels = 8;         // per replica and I/O thread
  std::chrono::milliseconds eject_time{
      2'000};  // a failing replica is left alone this long, then tried with one request
  std::chrono::milliseconds resolve_interval{5'000};  // names of replicas are resolved again
};

}  // namespace sluice
