#include "replica/server_options.h"

#include <grpc/grpc.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <limits>

namespace sluice {
namespace {

int to_int(std::uint64_t value) noexcept {
  return static_cast<int>(std::min<std::uint64_t>(value, std::numeric_limits<int>::max()));
}

int to_int(std::chrono::milliseconds value) noexcept {
  return to_int(static_cast<std::uint64_t>(std::max<std::int64_t>(value.count(), 1)));
}

}  // namespace

int grpc_receive_bound(const Limits& limits) noexcept {
  return to_int(std::uint64_t{limits.max_message_bytes} * 5 / 4);
}

void set_server_options(const Limits& limits, const TransportOptions& transport,
                        grpc::ServerBuilder& builder) {
  const auto set = [&builder](const char* option, int value) {
    builder.AddChannelArgument(option, value);
  };

  set(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, grpc_receive_bound(limits));
  set(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, to_int(limits.max_message_bytes));
  set(GRPC_ARG_MAX_METADATA_SIZE, to_int(transport.max_metadata_bytes));
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS, to_int(limits.max_concurrent_streams));

  // Ours to the client: a client that vanished is noticed also while nothing is sent, however long
  // that takes.
  set(GRPC_ARG_KEEPALIVE_TIME_MS, to_int(limits.keepalive_time));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, to_int(limits.keepalive_timeout));
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);

  // The client's to us.
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, to_int(limits.min_ping_interval));
  set(GRPC_ARG_HTTP2_MAX_PING_STRIKES, to_int(transport.max_ping_strikes));

  set(GRPC_ARG_MAX_CONNECTION_AGE_MS, to_int(limits.max_connection_age));
  set(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, to_int(limits.max_connection_age_grace));
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, to_int(transport.handshake_timeout));

  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, to_int(transport.http2_frame_bytes));
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, to_int(transport.http2_window_bytes));
  set(GRPC_ARG_HTTP2_BDP_PROBE, transport.http2_bdp_probe ? 1 : 0);

  // A compressed message may become a thousand times itself before we see how long it is.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);

  grpc::ResourceQuota quota("sluice");
  quota.Resize(limits.grpc_memory_bytes);
  builder.SetResourceQuota(quota);
}

}  // namespace sluice
