#include "load/grpc_channel.h"

#include <grpcpp/grpcpp.h>

#include <array>
#include <chrono>

#include "base/concat.h"
#include "base/listen_address.h"

namespace sluice {
namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr int kMostMessageBytes = 50 << 20;

constexpr std::array<const char*, 17> kNames{
    "",          "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

}  // namespace

std::shared_ptr<grpc::Channel> make_load_channel(const TargetOptions& options, bool tight) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
                   1);  // else equal channels share a connection
  arguments.SetMaxReceiveMessageSize(kMostMessageBytes);
  arguments.SetMaxSendMessageSize(kMostMessageBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // a refusal is a figure, too
  if (tight) {
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  }
  const std::string address = host_port(options.host, std::stoi(options.port));
  if (!options.tls) {
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }
  grpc::SslCredentialsOptions pem;
  pem.pem_root_certs = options.authority;
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(pem), arguments);
}

Result<void> wait_connected(grpc::Channel& channel, const TargetOptions& options) {
  const auto deadline = std::chrono::system_clock::now() + kPatience;
  for (;;) {
    const grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) return {};
    const bool failed = state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN;
    if (!failed && channel.WaitForStateChange(state, deadline)) continue;
    return fail(Code::kUnavailable,
                concat("nobody answers with gRPC", options.tls ? " over TLS" : "", " at ",
                       options.host, ":", options.port));
  }
}

void prepare_call(const TargetOptions& options, grpc::ClientContext& context) {
  if (!options.key.empty()) context.AddMetadata("authorization", "Bearer " + options.key);
  if (options.timeout.count() > 0) {
    context.set_deadline(std::chrono::system_clock::now() + options.timeout);
  }
}

std::string status_name(int code) {
  if (code < 0 || static_cast<std::size_t>(code) >= kNames.size()) return concat("code ", code);
  return kNames[static_cast<std::size_t>(code)];
}

}  // namespace sluice
