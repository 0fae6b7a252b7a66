// GenerateReactor: one Generate call. Its deltas are pulled from the token stream when no write is
// out; those that come while one is out join. A cancelled call drops its StreamReader at once, in
// whatever phase it is. Bounded: one message in flight, one token stream behind it
// (Limits::stream_deltas, stream_bytes). While the request waits or the reader does not read,
// nothing is sent: gRPC's keepalive alone keeps the connection, there are no empty messages. A
// client that takes nothing for long is cut, whether the stream has ended or not (StuckCalls).
// Thread: gRPC's, the preparer's and delivery; a mutex orders them.
#pragma once

namespace grpc {
class ByteBuffer;
class CallbackServerContext;
template <class Response>
class ServerWriteReactor;
}  // namespace grpc
namespace inference {
class GenerateResponse;
}  // namespace inference

namespace sluice {

struct ReplicaContext;
class StuckCalls;

// The reactor of a new call; it owns itself until the call is done. `bytes` is its GenerateRequest,
// and is not looked at before the caller is known. `replica` and `calls` outlive
// the call.
[[nodiscard]] grpc::ServerWriteReactor<inference::GenerateResponse>* serve_generate(
    const ReplicaContext& replica, StuckCalls& calls, grpc::CallbackServerContext& call,
    const grpc::ByteBuffer& bytes);

}  // namespace sluice
