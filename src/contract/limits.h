// Limits: every bound of a replica, by name, with its default. The flag is the name with dashes
// (max_queued_requests:
// --max-queued-requests); docs/back_pressure.md says what happens at each and which metric shows
// it. Thread: any (values).
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice {

struct Limits {
  // Admission.
  std::uint32_t max_queued_requests = 1024;  // requests (choices) admitted and not yet in the batch
  std::uint64_t max_queued_prompt_tokens = 1 << 20;  // their prompt tokens together

  // Batch.
  std::uint32_t max_sequences = 32;  // with KV at once: running and parked
  std::uint32_t max_step_tokens =
      512;  // rows in one forward pass; also the worst time from cancel to free
  double prefill_stretch =
      1.6;  // a step with decode rows may take this many times a step of them alone

  // Token stream, for each request.
  std::uint32_t stream_deltas =
      64;  // deltas not yet taken by the wire; above it the sequence is parked
  std::uint32_t stream_bytes = 16 << 10;         // bytes of them
  std::chrono::milliseconds park_limit{30'000};  // parked longer than this: RESOURCE_EXHAUSTED

  // One request.
  std::uint32_t max_message_bytes = 50 << 20;  // a gRPC message, both ways
  std::uint32_t max_message_values =
      262'144;  // fields and elements of one: as an object each outgrows its bytes
  std::uint32_t max_messages = 4096;
  std::uint32_t max_stop_strings = 16;
  std::uint32_t max_stop_bytes = 256;  // each
  std::uint32_t max_logit_bias = 1024;
  std::uint32_t max_n = 16;
  std::uint32_t max_embed_inputs = 2048;
  std::uint32_t max_queued_embeds = 64;  // Embed calls waiting for the embedder

  // Connections and calls.
  std::uint32_t max_grpc_connections = 20'000;
  std::uint32_t max_concurrent_streams = 65'536;  // calls on one connection
  std::uint32_t max_watches = 1024;               // calls of WatchLoad, and of health's Watch, each
  std::uint64_t grpc_memory_bytes = std::uint64_t{2} << 30;  // gRPC's resource quota
  std::uint32_t max_attached_requests = 16'384;              // running at once on one Attach call
  std::chrono::milliseconds keepalive_time{30'000};
  std::chrono::milliseconds keepalive_timeout{10'000};
  std::chrono::milliseconds min_ping_interval{
      5'000};  // clients may ping this often, with and without calls
  std::chrono::milliseconds max_connection_age{
      std::chrono::hours{1}};  // gRPC adds its own jitter of ±10 %
  std::chrono::milliseconds max_connection_age_grace{std::chrono::hours{1}};
  std::chrono::milliseconds drain_grace{30'000};
  std::chrono::milliseconds stall_limit{
      30'000};  // the engine has not come round for this: NOT_SERVING
};

}  // namespace sluice
