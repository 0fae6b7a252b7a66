// AttachCall: the step stream of one gateway. Starts, cancels and credits come up; one StepBatch
// for each decode step goes down, made and written by the delivery thread. While a batch is being
// written, further steps join in the next. Bounded: Limits::max_attached_requests running; while
// kMaxUnsentEndings refusals and ends wait for the client to read them, nothing more is taken in,
// in the middle of a message too. Errors of one request end that request alone; the call's end
// cancels all of them, and what is no AttachRequest ends the call. Thread: gRPC's, the preparer's
// and delivery; a mutex orders them.
#pragma once

#include <cstddef>

namespace grpc {
class ByteBuffer;
class CallbackServerContext;
template <class Request, class Response>
class ServerBidiReactor;
}  // namespace grpc
namespace inference {
class StepBatch;
}  // namespace inference

namespace sluice {

struct ReplicaContext;

inline constexpr std::size_t kMaxUnsentEndings = 1024;

// The reactor of a new call; it owns itself until the call is done. `replica` outlives the call.
[[nodiscard]] grpc::ServerBidiReactor<grpc::ByteBuffer, inference::StepBatch>* serve_attach(
    const ReplicaContext& replica, grpc::CallbackServerContext& call);

}  // namespace sluice
