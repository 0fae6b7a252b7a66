// What a gRPC server is told about its transport: one function sets every option, by gRPC's macros
// and never by a spelt-out key, for an unknown key is ignored without a word. The self-proof runs
// through the same function.
// gRPC's own bound on a received message is a quarter above --max-message-bytes: between the two, a
// call is refused by us, with a text that names the limit and the flag; above, by gRPC
// (RESOURCE_EXHAUSTED with the numbers alone).
// Thread: any (values).
#pragma once

#include <chrono>
#include <cstdint>

#include "contract/limits.h"

namespace grpc {
class ServerBuilder;
}

namespace sluice {

// What the transport has besides Limits.
struct TransportOptions {
  std::uint32_t max_ping_strikes =
      2;  // pings that come too early, before the connection is closed. 0: any number
  std::uint32_t max_metadata_bytes = 16 << 10;
  std::uint32_t http2_frame_bytes = 16 << 10;  // 16,384 to 16,777,215
  std::uint32_t http2_window_bytes =
      64 << 10;                 // that a client may send ahead on one call, before the probe below
  bool http2_bdp_probe = true;  // lets the window grow with the connection's speed
  std::chrono::milliseconds handshake_timeout{20'000};  // TLS and HTTP/2 settings
};

// Sets all of it; every option that Sluice has an opinion on is in here.
void set_server_options(const Limits& limits, const TransportOptions& transport,
                        grpc::ServerBuilder& builder);

// Result of --max-message-bytes for gRPC's own bound on what it receives.
[[nodiscard]] int grpc_receive_bound(const Limits& limits) noexcept;

}  // namespace sluice
