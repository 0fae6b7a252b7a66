// Embed and CountTokens: unary calls whose answer another thread makes. A cancelled call gives up
// its claim, so that waiting work is skipped and a running forward pass ends. Bounded by the
// EmbedQueue and by admission's tickets. Thread: gRPC's and the thread that answers; a mutex orders
// them.
#pragma once

namespace grpc {
class ByteBuffer;
class CallbackServerContext;
class ServerUnaryReactor;
}  // namespace grpc
namespace inference {
class CountTokensResponse;
class EmbedResponse;
}  // namespace inference

namespace sluice {

struct ReplicaContext;

// The reactors own themselves until their call is done. `bytes` is the call's request, and is not
// looked at before the caller is known; `response` lives as long as the call.
[[nodiscard]] grpc::ServerUnaryReactor* serve_embed(const ReplicaContext& replica,
                                                    grpc::CallbackServerContext& call,
                                                    const grpc::ByteBuffer& bytes,
                                                    inference::EmbedResponse& response);
[[nodiscard]] grpc::ServerUnaryReactor* serve_count_tokens(
    const ReplicaContext& replica, grpc::CallbackServerContext& call, const grpc::ByteBuffer& bytes,
    inference::CountTokensResponse& response);

}  // namespace sluice
