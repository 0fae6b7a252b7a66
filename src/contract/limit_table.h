// visit_limits: every bound by its flag, for whatever goes through all of them (flags, config file,
// Replica/Describe). The flag of a duration ends in -ms; a bound without a unit in its flag counts
// what `unit` says.
// Thread: any.
#pragma once

#include "contract/limits.h"

namespace sluice {

// visit(flag without its dashes, the field, its unit, what it bounds). `LimitsType`: Limits or
// const Limits.
template <typename LimitsType, typename Visitor>
void visit_limits(LimitsType& limits, Visitor&& visit) {
  visit("max-queued-requests", limits.max_queued_requests, "requests",
        "Requests admitted and not yet in the batch");
  visit("max-queued-prompt-tokens", limits.max_queued_prompt_tokens, "tokens",
        "Their prompt tokens together");

  visit("max-sequences", limits.max_sequences, "sequences",
        "Sequences with KV at once, running and parked");
  visit("max-step-tokens", limits.max_step_tokens, "tokens", "Rows in one forward pass");
  visit("prefill-stretch", limits.prefill_stretch, "times",
        "How much longer prefill may make a step that decodes");

  visit("stream-deltas", limits.stream_deltas, "deltas",
        "Deltas of one request that its wire has not taken");
  visit("stream-bytes", limits.stream_bytes, "bytes",
        "Bytes of one request that its wire has not taken");
  visit("park-limit-ms", limits.park_limit, "ms",
        "How long a request whose client does not read is kept");

  visit("max-message-bytes", limits.max_message_bytes, "bytes", "A gRPC message, both ways");
  visit("max-message-values", limits.max_message_values, "values",
        "Fields and elements of one gRPC message");
  visit("max-messages", limits.max_messages, "messages", "Messages of one conversation");
  visit("max-stop-strings", limits.max_stop_strings, "strings", "Stop strings of one request");
  visit("max-stop-bytes", limits.max_stop_bytes, "bytes", "One stop string");
  visit("max-logit-bias", limits.max_logit_bias, "tokens", "Entries of one request's logit_bias");
  visit("max-n", limits.max_n, "choices", "Choices of one request");
  visit("max-embed-inputs", limits.max_embed_inputs, "texts", "Inputs of one Embed call");
  visit("max-queued-embeds", limits.max_queued_embeds, "calls", "Embed calls waiting");

  visit("max-grpc-connections", limits.max_grpc_connections, "connections",
        "Connections of gRPC clients");
  visit("max-concurrent-streams", limits.max_concurrent_streams, "calls",
        "Calls on one connection");
  visit("max-watches", limits.max_watches, "calls",
        "Calls of WatchLoad, and of health's Watch, each");
  visit("grpc-memory-bytes", limits.grpc_memory_bytes, "bytes", "gRPC's resource quota");
  visit("max-attached-requests", limits.max_attached_requests, "requests",
        "Requests running on one Attach call");
  visit("keepalive-time-ms", limits.keepalive_time, "ms",
        "A silent connection is pinged after this");
  visit("keepalive-timeout-ms", limits.keepalive_timeout, "ms",
        "and closed when no answer comes within this");
  visit("min-ping-interval-ms", limits.min_ping_interval, "ms",
        "Clients may ping this often, with and without calls");
  visit("max-connection-age-ms", limits.max_connection_age, "ms",
        "A connection takes no new calls after this, ±10 %");
  visit("max-connection-age-grace-ms", limits.max_connection_age_grace, "ms",
        "and is closed this much later");
  visit("drain-grace-ms", limits.drain_grace, "ms",
        "How long running streams may go on in a drain");
  visit("stall-limit-ms", limits.stall_limit, "ms",
        "NOT_SERVING when the engine has not come round for this");
}

}  // namespace sluice
