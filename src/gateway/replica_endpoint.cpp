#include "gateway/replica_endpoint.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <string_view>
#include <tuple>
#include <utility>

#include "base/concat.h"
#include "base/read_file.h"

namespace sluice {
namespace {

constexpr int kKeepaliveTimeMs = 10'000;
constexpr int kKeepaliveTimeoutMs = 5'000;
constexpr int kConnectMs = 5'000;  // TCP, TLS and HTTP/2 settings, over a slow network too
constexpr int kFirstReconnectMs = 100;
constexpr int kMostReconnectMs = 1'000;
// A server runs about two messages ahead of a reader that stops (docs/contract.md).
constexpr int kCallLookaheadBytes = 64;

Result<std::string> read_pem(const std::string& path, std::string_view flag) {
  if (path.empty()) return std::string();
  auto text = read_file(path, flag, kMostPemBytes);
  if (text && text->empty()) return invalid(concat(path, " (", flag, ") is empty"));
  return text;
}

}  // namespace

Result<ReplicaAccess> ReplicaAccess::make(const ReplicaTls& tls, const std::string& api_key) {
  ReplicaAccess access = local(api_key);
  access.server_name = tls.server_name;
  if (tls.authority.empty() && tls.certificate.empty() && tls.key.empty()) return access;
  grpc::SslCredentialsOptions options;
  for (const auto& [path, flag, pem] :
       {std::tuple(&tls.authority, "--replica-tls-ca", &options.pem_root_certs),
        std::tuple(&tls.certificate, "--replica-tls-cert", &options.pem_cert_chain),
        std::tuple(&tls.key, "--replica-tls-key", &options.pem_private_key)}) {
    auto text = read_pem(*path, flag);
    if (!text) return tl::unexpected(std::move(text.error()));
    *pem = std::move(*text);
  }
  access.credentials = grpc::SslCredentials(options);
  return access;
}

ReplicaAccess ReplicaAccess::local(const std::string& api_key) {
  ReplicaAccess access;
  access.credentials = grpc::InsecureChannelCredentials();
  if (!api_key.empty()) access.authorization = concat("Bearer ", api_key);
  return access;
}

ReplicaEndpoint::ReplicaEndpoint(std::shared_ptr<const ReplicaAccess> access, std::string target,
                                 std::string host)
    : access_(std::move(access)), target_(std::move(target)), host_(std::move(host)) {}

ReplicaEndpoint::ReplicaEndpoint(std::shared_ptr<const ReplicaAccess> access,
                                 std::shared_ptr<grpc::Channel> local)
    : access_(std::move(access)), local_(std::move(local)) {}

std::shared_ptr<grpc::Channel> ReplicaEndpoint::open(ChannelUse use) const {
  if (local_) return local_;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  // gRPC's name for how long one attempt may take at least.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMostReconnectMs);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // the gateway's own, within its budget
  if (use == ChannelUse::kCalls) {
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kCallLookaheadBytes);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  }
  const std::string& name = access_->server_name.empty() ? host_ : access_->server_name;
  if (!name.empty()) arguments.SetSslTargetNameOverride(name);
  return grpc::CreateCustomChannel(target_, access_->credentials, arguments);
}

void ReplicaEndpoint::authorize(grpc::ClientContext& call) const {
  if (!access_->authorization.empty()) call.AddMetadata("authorization", access_->authorization);
}

}  // namespace sluice
