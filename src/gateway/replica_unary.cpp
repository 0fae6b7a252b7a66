#include "gateway/replica_unary.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <boost/asio/post.hpp>
#include <optional>
#include <utility>

#include "base/concat.h"
#include "contract/utf8.h"
#include "contract/wire_client.h"
#include "gateway/replica_call.h"
#include "gateway/wake_up.h"
#include "inference.grpc.pb.h"

namespace sluice {

// Lives until gRPC has let go of it, whether or not somebody still waits.
template <typename Request, typename Response>
struct ReplicaUnary::Call {
  std::shared_ptr<grpc::ClientContext> context = std::make_shared<grpc::ClientContext>();
  Request request;
  Response response;
  grpc::Status status;
  std::optional<Gate::Pass> pass;
  WakeUp wake_up;
  bool done = false;
};

template <typename Request, typename Response, typename Method>
Task<Result<void>> ReplicaUnary::run(std::shared_ptr<Call<Request, Response>> call, Attempt attempt,
                                     ReplicaChannels& channels, CallContext context,
                                     Method method) {
  auto pass = closed_ ? std::nullopt : calls_.enter();
  if (!pass) co_return fail(Code::kUnavailable, "the gateway is shutting down");
  call->pass.emplace(std::move(*pass));
  const ReplicaChannels::Place place = channels.take();
  prepare_call(*call->context, channels.endpoint(), context);
  running_.insert(call->context);
  inference::LLM::Stub stub(place.channel());
  auto done = [call, &io = io_](grpc::Status status) mutable noexcept {
    call->status = std::move(status);
    // The post comes before the pass goes back: with the last pass the loop may go, too. And it
    // takes gRPC's reference along (replica_endpoint.h says why).
    const auto leaving = std::move(call->pass);
    asio::post(io, [call = std::move(call)] {
      call->done = true;
      call->wake_up.notify();
    });
  };
  (stub.async()->*method)(call->context.get(), &call->request, &call->response, std::move(done));

  // However this ends, even by the frame's destruction.
  struct Leaving {
    ReplicaUnary* unary;
    std::shared_ptr<Call<Request, Response>> call;
    ~Leaving() {
      if (!call->done) call->context->TryCancel();
      unary->running_.erase(call->context);
    }
  };
  const Leaving leaving{this, call};
  co_await call->wake_up.wait();
  if (!call->done) co_return fail(Code::kCancelled, "cancelled");
  Result<void> how = how_it_ended(call->status, *call->context);
  if (how) attempt.first_came();
  attempt.ended(how);
  co_return how;
}

Task<Result<EmbedAnswer>> ReplicaUnary::embed(Attempt attempt, ReplicaChannels& channels,
                                              std::string model, std::vector<std::string> inputs,
                                              CallContext context) {
  const auto call = std::make_shared<Call<inference::EmbedRequest, inference::EmbedResponse>>();
  if (find_invalid_utf8(model)) co_return invalid("model is not valid UTF-8");
  call->request.set_model(std::move(model));
  for (std::string& input : inputs) call->request.add_inputs(std::move(input));
  using Stub = std::remove_pointer_t<decltype(std::declval<inference::LLM::Stub>().async())>;
  using Method = void (Stub::*)(grpc::ClientContext*, const inference::EmbedRequest*,
                                inference::EmbedResponse*, std::function<void(grpc::Status)>);
  const Result<void> how = co_await run(call, std::move(attempt), channels, std::move(context),
                                        static_cast<Method>(&Stub::Embed));
  if (!how) co_return tl::unexpected(how.error());
  EmbedAnswer answer;
  answer.prompt_tokens = call->response.prompt_tokens();
  answer.model = std::move(*call->response.mutable_model());
  for (const inference::Embedding& embedding : call->response.embeddings())
    answer.embeddings.emplace_back(embedding.values().begin(), embedding.values().end());
  co_return answer;
}

Task<Result<TokenCount>> ReplicaUnary::count_tokens(Attempt attempt, ReplicaChannels& channels,
                                                    std::string model, PromptSource prompt,
                                                    CallContext context) {
  const auto call =
      std::make_shared<Call<inference::CountTokensRequest, inference::CountTokensResponse>>();
  if (find_invalid_utf8(model)) co_return invalid("model is not valid UTF-8");
  call->request.set_model(std::move(model));
  if (auto text = to_wire(prompt, call->request); !text) co_return tl::unexpected(text.error());
  using Stub = std::remove_pointer_t<decltype(std::declval<inference::LLM::Stub>().async())>;
  using Method = void (Stub::*)(grpc::ClientContext*, const inference::CountTokensRequest*,
                                inference::CountTokensResponse*, std::function<void(grpc::Status)>);
  const Result<void> how = co_await run(call, std::move(attempt), channels, std::move(context),
                                        static_cast<Method>(&Stub::CountTokens));
  if (!how) co_return tl::unexpected(how.error());
  co_return TokenCount{.tokens = call->response.tokens(),
                       .context_tokens = call->response.context_tokens()};
}

void ReplicaUnary::close() {
  closed_ = true;
  for (const auto& context : running_) context->TryCancel();
}

}  // namespace sluice
