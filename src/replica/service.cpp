#include "replica/service.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <optional>

#include "access/keys.h"
#include "inference.grpc.pb.h"
#include "replica/attach.h"
#include "replica/call.h"
#include "replica/context.h"
#include "replica/describe.h"
#include "replica/generate_reactor.h"
#include "replica/parse_message.h"
#include "replica/raw_method.h"
#include "replica/replica_metrics.h"
#include "replica/stuck_calls.h"
#include "replica/unary_calls.h"
#include "replica/watch_bound.h"
#include "replica/watch_load.h"

namespace sluice {
namespace {

// Answers a call that needs nobody's help; `taken`: whether its caller may.
template <typename Request, typename Fill>
grpc::ServerUnaryReactor* answer(const ReplicaContext& replica, grpc::CallbackServerContext& call,
                                 Method method, Result<void> taken, const grpc::ByteBuffer& bytes,
                                 const Fill& fill) {
  Request request;
  if (taken) taken = parse_message(bytes, replica.limits, request);
  if (taken) fill(request);
  replica.metrics.count_call(method, taken ? std::nullopt : std::optional(taken.error().code));
  end_with_request_id(call);
  grpc::ServerUnaryReactor* const reactor = call.DefaultReactor();
  reactor->Finish(taken ? grpc::Status::OK : failed(call, taken.error()));
  return reactor;
}

grpc::ServerUnaryReactor* serve_describe(const ReplicaContext& replica,
                                         grpc::CallbackServerContext& call,
                                         const grpc::ByteBuffer& bytes,
                                         inference::DescribeResponse& response) {
  return answer<inference::DescribeRequest>(replica, call, Method::kDescribe,
                                            authenticate(call, replica.keys), bytes,
                                            [&](const auto&) { describe(replica, response); });
}

grpc::ServerUnaryReactor* serve_drain(const ReplicaContext& replica,
                                      grpc::CallbackServerContext& call,
                                      const grpc::ByteBuffer& bytes,
                                      inference::DrainResponse& response) {
  return answer<inference::DrainRequest>(replica, call, Method::kDrain,
                                         authenticate_operator(call, replica.keys), bytes,
                                         [&](const inference::DrainRequest& request) {
                                           std::optional<std::chrono::milliseconds> grace;
                                           if (request.has_grace_ms())
                                             grace = std::chrono::milliseconds(request.grace_ms());
                                           response.set_running(replica.start_drain(grace));
                                         });
}

// `serve` with the replica as its first argument.
template <typename Serve>
auto of(const ReplicaContext& replica, Serve serve) {
  return [&replica, serve](grpc::CallbackServerContext& call, auto&&... rest) {
    return serve(replica, call, rest...);
  };
}

}  // namespace

// A method's number is its place in the service.
class Services::Llm final : public inference::LLM::Service {
 public:
  explicit Llm(const ReplicaContext& replica)
      : calls_(replica.clock, 2 * replica.limits.park_limit, replica.metrics.generate_cut) {
    MarkMethodRawCallback(
        0, raw_server_streaming<inference::GenerateResponse>(
               [this, &replica](grpc::CallbackServerContext& call, const grpc::ByteBuffer& bytes) {
                 return serve_generate(replica, calls_, call, bytes);
               }));
    MarkMethodRawCallback(1, raw_unary<inference::EmbedResponse>(of(replica, &serve_embed)));
    MarkMethodRawCallback(
        2, raw_unary<inference::CountTokensResponse>(of(replica, &serve_count_tokens)));
  }
  void cut_stuck_calls() noexcept { calls_.look(); }

 private:
  StuckCalls calls_;
};

class Services::Replica final : public inference::Replica::Service {
 public:
  explicit Replica(const ReplicaContext& replica)
      : watches_(replica.limits.max_watches, replica.metrics.load_watches,
                 replica.metrics.load_watches_refused) {
    MarkMethodRawCallback(0, raw_bidi<inference::StepBatch>(of(replica, &serve_attach)));
    MarkMethodRawCallback(1, raw_unary<inference::DescribeResponse>(of(replica, &serve_describe)));
    MarkMethodRawCallback(
        2, raw_server_streaming<inference::Load>(
               [this, &replica](grpc::CallbackServerContext& call, const grpc::ByteBuffer& bytes) {
                 return serve_watch_load(replica, watches_, call, bytes);
               }));
    MarkMethodRawCallback(3, raw_unary<inference::DrainResponse>(of(replica, &serve_drain)));
  }

 private:
  WatchBound watches_;
};

Services::Services(const ReplicaContext& replica)
    : llm_(std::make_unique<Llm>(replica)), replica_(std::make_unique<Replica>(replica)) {}
Services::~Services() = default;

grpc::Service& Services::llm() noexcept { return *llm_; }
grpc::Service& Services::replica() noexcept { return *replica_; }

void Services::cut_stuck_calls() noexcept { llm_->cut_stuck_calls(); }

}  // namespace sluice
