// raw_…: handlers of gRPC methods whose request comes as bytes, for parse_message, and whose
// response is a message: the generated WithRawCallbackMethod_… have bytes for both. Given to
// MarkMethodRawCallback, with the method's place in its service. Thread: gRPC's.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

namespace sluice {

// Takes the bytes out of what gRPC would keep until the call is done, however long it streams.
[[nodiscard]] inline grpc::ByteBuffer take_bytes(const grpc::ByteBuffer* request) noexcept {
  grpc::ByteBuffer taken;
  taken.Swap(const_cast<grpc::ByteBuffer*>(request));
  return taken;
}

// serve(call, bytes, response) gives the call's reactor.
template <typename Response, typename Serve>
[[nodiscard]] auto* raw_unary(Serve serve) {
  return new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, Response>(
      [serve = std::move(serve)](grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
                                 Response* response) noexcept {
        const grpc::ByteBuffer bytes = take_bytes(request);
        return serve(*call, bytes, *response);
      });
}

// serve(call, bytes)
template <typename Response, typename Serve>
[[nodiscard]] auto* raw_server_streaming(Serve serve) {
  return new grpc::internal::CallbackServerStreamingHandler<grpc::ByteBuffer, Response>(
      [serve = std::move(serve)](grpc::CallbackServerContext* call,
                                 const grpc::ByteBuffer* request) noexcept {
        const grpc::ByteBuffer bytes = take_bytes(request);
        return serve(*call, bytes);
      });
}

// serve(call)
template <typename Response, typename Serve>
[[nodiscard]] auto* raw_bidi(Serve serve) {
  return new grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, Response>(
      [serve = std::move(serve)](grpc::CallbackServerContext* call) noexcept {
        return serve(*call);
      });
}

}  // namespace sluice
