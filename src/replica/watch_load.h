// WatchLoad: sends the replica's load at once, and then whenever it has changed, at most each
// interval. Bounded: one message in flight and one alarm for each call. Thread: gRPC's; a mutex
// orders them.
#pragma once

namespace grpc {
class CallbackServerContext;
template <class Response>
class ServerWriteReactor;
}  // namespace grpc
namespace inference {
class Load;
class WatchLoadRequest;
}  // namespace inference

namespace sluice {

struct ReplicaContext;

// The reactor of a new call; it owns itself until the call is done. `replica` outlives the call.
[[nodiscard]] grpc::ServerWriteReactor<inference::Load>* serve_watch_load(
    const ReplicaContext& replica, grpc::CallbackServerContext& call,
    const inference::WatchLoadRequest& request);

}  // namespace sluice
