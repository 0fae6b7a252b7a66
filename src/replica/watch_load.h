// WatchLoad: sends the replica's load at once, and then whenever it has changed, at most each
// interval. Bounded: one message in flight and one alarm for each call. Thread: gRPC's; a mutex
// orders them.
#pragma once

namespace grpc {
class ByteBuffer;
class CallbackServerContext;
template <class Response>
class ServerWriteReactor;
}  // namespace grpc
namespace inference {
class Load;
}  // namespace inference

namespace sluice {

struct ReplicaContext;
class WatchBound;

// The reactor of a new call; it owns itself until the call is done. `bytes` is its
// WatchLoadRequest, and is not looked at before the caller is known. `replica` and `bound` outlive
// the call.
[[nodiscard]] grpc::ServerWriteReactor<inference::Load>* serve_watch_load(
    const ReplicaContext& replica, WatchBound& bound, grpc::CallbackServerContext& call,
    const grpc::ByteBuffer& bytes);

}  // namespace sluice
