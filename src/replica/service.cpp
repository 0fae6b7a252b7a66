#include "replica/service.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <optional>
#include <utility>

#include "access/keys.h"
#include "inference.grpc.pb.h"
#include "replica/attach.h"
#include "replica/call.h"
#include "replica/context.h"
#include "replica/describe.h"
#include "replica/generate_reactor.h"
#include "replica/replica_metrics.h"
#include "replica/unary_calls.h"
#include "replica/watch_load.h"

namespace sluice {
namespace {

// gRPC makes a request for its call alone, keeps it until the call is done, and does not look at it
// again: the contents may be taken, so that they are not held for the length of a stream.
template <typename Message>
Message&& take(const Message* request) noexcept {
  return std::move(*const_cast<Message*>(request));
}

// Answers a call that needs nobody's help.
template <typename Fill>
grpc::ServerUnaryReactor* answer(const ReplicaContext& replica, grpc::CallbackServerContext& call,
                                 Method method, const Fill& fill) noexcept {
  const auto known = authenticate(call, replica.keys);
  if (known) fill();
  replica.metrics.count_call(method, known ? std::nullopt : std::optional(known.error().code));
  grpc::ServerUnaryReactor* const reactor = call.DefaultReactor();
  reactor->Finish(known ? grpc::Status::OK : failed(call, known.error()));
  return reactor;
}

}  // namespace

class Services::Llm final : public inference::LLM::CallbackService {
 public:
  explicit Llm(const ReplicaContext& replica) noexcept : replica_(replica) {}

  grpc::ServerWriteReactor<inference::GenerateResponse>* Generate(
      grpc::CallbackServerContext* call,
      const inference::GenerateRequest* request) noexcept override {
    return serve_generate(replica_, *call, take(request));
  }

  grpc::ServerUnaryReactor* Embed(grpc::CallbackServerContext* call,
                                  const inference::EmbedRequest* request,
                                  inference::EmbedResponse* response) noexcept override {
    return serve_embed(replica_, *call, take(request), *response);
  }

  grpc::ServerUnaryReactor* CountTokens(
      grpc::CallbackServerContext* call, const inference::CountTokensRequest* request,
      inference::CountTokensResponse* response) noexcept override {
    return serve_count_tokens(replica_, *call, take(request), *response);
  }

 private:
  const ReplicaContext& replica_;
};

class Services::Replica final : public inference::Replica::CallbackService {
 public:
  explicit Replica(const ReplicaContext& replica) noexcept : replica_(replica) {}

  grpc::ServerBidiReactor<inference::AttachRequest, inference::StepBatch>* Attach(
      grpc::CallbackServerContext* call) noexcept override {
    return serve_attach(replica_, *call);
  }

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* call,
                                     const inference::DescribeRequest*,
                                     inference::DescribeResponse* response) noexcept override {
    return answer(replica_, *call, Method::kDescribe, [&] { describe(replica_, *response); });
  }

  grpc::ServerWriteReactor<inference::Load>* WatchLoad(
      grpc::CallbackServerContext* call,
      const inference::WatchLoadRequest* request) noexcept override {
    return serve_watch_load(replica_, *call, *request);
  }

  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* call,
                                  const inference::DrainRequest* request,
                                  inference::DrainResponse* response) noexcept override {
    return answer(replica_, *call, Method::kDrain, [&] {
      std::optional<std::chrono::milliseconds> grace;
      if (request->has_grace_ms()) grace = std::chrono::milliseconds(request->grace_ms());
      response->set_running(replica_.start_drain(grace));
    });
  }

 private:
  const ReplicaContext& replica_;
};

Services::Services(const ReplicaContext& replica)
    : llm_(std::make_unique<Llm>(replica)), replica_(std::make_unique<Replica>(replica)) {}
Services::~Services() = default;

grpc::Service& Services::llm() noexcept { return *llm_; }
grpc::Service& Services::replica() noexcept { return *replica_; }

}  // namespace sluice
