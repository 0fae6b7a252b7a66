// Embed and CountTokens: unary calls whose answer another thread makes. A cancelled call gives up
// its claim, so that waiting work is skipped and a running forward pass ends. Bounded by the
// EmbedQueue and by admission's tickets. Thread: gRPC's and the thread that answers; a mutex orders
// them.
#pragma once

namespace grpc {
class CallbackServerContext;
class ServerUnaryReactor;
}  // namespace grpc
namespace inference {
class CountTokensRequest;
class CountTokensResponse;
class EmbedRequest;
class EmbedResponse;
}  // namespace inference

namespace sluice {

struct ReplicaContext;

// The reactors own themselves until their call is done. They take the request's contents;
// `response` lives as long as the call.
[[nodiscard]] grpc::ServerUnaryReactor* serve_embed(const ReplicaContext& replica,
                                                    grpc::CallbackServerContext& call,
                                                    inference::EmbedRequest&& request,
                                                    inference::EmbedResponse& response);
[[nodiscard]] grpc::ServerUnaryReactor* serve_count_tokens(
    const ReplicaContext& replica, grpc::CallbackServerContext& call,
    inference::CountTokensRequest&& request, inference::CountTokensResponse& response);

}  // namespace sluice
