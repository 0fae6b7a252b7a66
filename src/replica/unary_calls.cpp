#include "replica/unary_calls.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "access/keys.h"
#include "base/concat.h"
#include "base/mutex.h"
#include "contract/wire.h"
#include "engine/engine.h"
#include "inference.pb.h"
#include "replica/call.h"
#include "replica/context.h"
#include "replica/embed_queue.h"
#include "replica/parse_message.h"
#include "replica/preparer.h"
#include "replica/replica_metrics.h"

namespace sluice {
namespace {

class UnaryCall final : public grpc::ServerUnaryReactor,
                        public std::enable_shared_from_this<UnaryCall> {
 public:
  // `pass` may be empty if the call is to fail at once.
  UnaryCall(const ReplicaContext& replica, grpc::CallbackServerContext& call, Method method,
            std::optional<Gate::Pass> pass)
      : replica_(replica),
        call_(call),
        method_(method),
        deadline_(deadline_of(call, replica.clock)),
        pass_(std::move(pass)) {}

  // Keeps itself until OnDone.
  void own() noexcept { self_ = shared_from_this(); }

  [[nodiscard]] TimePoint deadline() const noexcept { return deadline_; }
  [[nodiscard]] ClaimWatch watch() noexcept EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return claim_.watch();
  }

  // Finishes the call with what `fill` does to its response. Only the first of succeed, fail and
  // cancellation has an effect.
  template <typename Fill>
  void succeed(const Fill& fill) noexcept EXCLUDES(mutex_) {
    if (!end(std::nullopt)) return;
    fill();
    end_with_request_id(call_);
    Finish(grpc::Status::OK);
  }

  void fail(const Error& error) noexcept EXCLUDES(mutex_) {
    if (!end(error.code)) return;
    end_with_request_id(call_);
    Finish(failed(call_, error));
  }

  void OnCancel() noexcept override { fail(cancelled(deadline_, replica_.clock)); }

  void OnDone() noexcept override {
    std::optional<Code> code;
    {
      MutexLock lock(mutex_);
      code = code_;
    }
    replica_.metrics.count_call(method_, code);
    pass_.reset();
    const auto self = std::move(self_);
  }

 private:
  // True for the first to end the call, which must then Finish it.
  bool end(std::optional<Code> code) noexcept EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (std::exchange(ended_, true)) return false;
    code_ = code;
    claim_.drop();
    return true;
  }

  const ReplicaContext& replica_;
  grpc::CallbackServerContext& call_;
  const Method method_;
  const TimePoint deadline_;
  std::optional<Gate::Pass> pass_;
  std::shared_ptr<UnaryCall> self_;

  Mutex mutex_;
  Claim claim_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
  std::optional<Code> code_ GUARDED_BY(mutex_);
};

std::shared_ptr<UnaryCall> make_call(const ReplicaContext& replica,
                                     grpc::CallbackServerContext& call, Method method) {
  auto made = std::make_shared<UnaryCall>(replica, call, method, replica.calls.enter());
  made->own();
  return made;
}

// What a request has to pass before it is looked at field by field.
template <typename Request>
Result<Request> take_request(const ReplicaContext& replica, const grpc::CallbackServerContext& call,
                             const grpc::ByteBuffer& bytes) {
  const auto caller = caller_of(call, replica.keys);
  if (!caller) return tl::unexpected(caller.error());
  Request request;
  if (auto parsed = parse_message(bytes, replica.limits, request); !parsed)
    return tl::unexpected(std::move(parsed.error()));
  if (auto allowed = may_use(**caller, request.model()); !allowed)
    return tl::unexpected(std::move(allowed.error()));
  if (replica.calls.closed()) return tl::unexpected(draining());
  return request;
}

Result<std::vector<std::string>> take_inputs(const ReplicaContext& replica,
                                             inference::EmbedRequest&& request) {
  if (auto served = validate_model_name(request.model(), replica.model); !served)
    return tl::unexpected(std::move(served.error()));
  if (replica.engine.info().embedding_size == 0)
    return fail(Code::kUnimplemented, "this model makes no embeddings");
  const auto count = static_cast<std::size_t>(request.inputs_size());
  if (count == 0 || count > replica.limits.max_embed_inputs) {
    return invalid(concat("inputs has ", count, " entries; 1 to ", replica.limits.max_embed_inputs,
                          " are allowed (--max-embed-inputs)"));
  }
  const std::size_t most_bytes =
      std::size_t{replica.model.context_tokens} * replica.model.longest_piece;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& input = request.inputs(static_cast<int>(i));
    const std::string field = concat("inputs[", i, "]");
    if (input.size() > most_bytes) {
      return invalid(concat(field, " has ", input.size(),
                            " bytes, more than the model's context of ",
                            replica.model.context_tokens, " tokens can hold"));
    }
    if (auto text = validate_text(input, field); !text)
      return tl::unexpected(std::move(text.error()));
  }
  return std::vector<std::string>(std::make_move_iterator(request.mutable_inputs()->begin()),
                                  std::make_move_iterator(request.mutable_inputs()->end()));
}

Result<void> start_embed(const ReplicaContext& replica, const std::shared_ptr<UnaryCall>& call,
                         inference::EmbedRequest&& request, inference::EmbedResponse& response) {
  auto inputs = take_inputs(replica, std::move(request));
  if (!inputs) return tl::unexpected(std::move(inputs.error()));
  auto done = [weak = std::weak_ptr(call), &response,
               model = replica.model.name](Result<Embeddings> embeddings) {
    const auto waiting = weak.lock();
    if (!waiting) return;
    if (!embeddings) return waiting->fail(embeddings.error());
    waiting->succeed([&] {
      for (const std::vector<float>& vector : embeddings->vectors) {
        response.add_embeddings()->mutable_values()->Add(vector.begin(), vector.end());
      }
      response.set_prompt_tokens(embeddings->prompt_tokens);
      response.set_model(std::string(model));
    });
  };
  return replica.embed_queue.submit({.inputs = std::move(*inputs),
                                     .deadline = call->deadline(),
                                     .claim = call->watch(),
                                     .done = std::move(done)});
}

Result<void> start_count(const ReplicaContext& replica, const std::shared_ptr<UnaryCall>& call,
                         inference::CountTokensRequest&& request,
                         inference::CountTokensResponse& response) {
  if (auto served = validate_model_name(request.model(), replica.model); !served) return served;
  auto prompt = from_wire(std::move(request));
  if (!prompt) return tl::unexpected(std::move(prompt.error()));
  if (auto valid = validate_prompt(*prompt, replica.limits, replica.model); !valid) return valid;
  auto ticket = replica.admission.reserve(1);
  if (!ticket) return tl::unexpected(std::move(ticket.error()));
  auto done = [weak = std::weak_ptr(call), &response,
               context = replica.model.context_tokens](Result<std::uint32_t> tokens) {
    const auto waiting = weak.lock();
    if (!waiting) return;
    if (!tokens) return waiting->fail(tokens.error());
    waiting->succeed([&] {
      response.set_tokens(*tokens);
      response.set_context_tokens(context);
    });
  };
  replica.preparer.submit(CountPreparation{.input = std::move(*prompt),
                                           .ticket = std::move(*ticket),
                                           .deadline = call->deadline(),
                                           .claim = call->watch(),
                                           .done = std::move(done)});
  return {};
}

}  // namespace

grpc::ServerUnaryReactor* serve_embed(const ReplicaContext& replica,
                                      grpc::CallbackServerContext& call,
                                      const grpc::ByteBuffer& bytes,
                                      inference::EmbedResponse& response) {
  const auto made = make_call(replica, call, Method::kEmbed);
  const auto started = take_request<inference::EmbedRequest>(replica, call, bytes)
                           .and_then([&](inference::EmbedRequest&& request) {
                             return start_embed(replica, made, std::move(request), response);
                           });
  if (!started) made->fail(started.error());
  return made.get();
}

grpc::ServerUnaryReactor* serve_count_tokens(const ReplicaContext& replica,
                                             grpc::CallbackServerContext& call,
                                             const grpc::ByteBuffer& bytes,
                                             inference::CountTokensResponse& response) {
  const auto made = make_call(replica, call, Method::kCountTokens);
  const auto started = take_request<inference::CountTokensRequest>(replica, call, bytes)
                           .and_then([&](inference::CountTokensRequest&& request) {
                             return start_count(replica, made, std::move(request), response);
                           });
  if (!started) made->fail(started.error());
  return made.get();
}

}  // namespace sluice
