#include "gateway/endpoints.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/concat.h"
#include "gateway/openai_request.h"
#include "gateway/openai_response.h"

namespace sluice {
namespace {

bool allowed(const Exchange& exchange, const Routing& routing) {
  return std::all_of(routing.models.begin(), routing.models.end(), [&](const std::string& model) {
    return allows_model(exchange.caller->limits, model);
  });
}

bool is_called(const ModelEntry& model, std::string_view name) {
  return model.name == name ||
         std::find(model.aliases.begin(), model.aliases.end(), name) != model.aliases.end();
}

// Whether a model is known by one of these names whose vectors have another size.
bool is_other_size(const std::vector<ModelEntry>& models, const std::vector<std::string>& names,
                   std::uint32_t size) {
  return std::any_of(models.begin(), models.end(), [&](const ModelEntry& model) {
    return model.embedding_size != 0 && model.embedding_size != size &&
           std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return is_called(model, name); });
  });
}

// Not a coroutine (see Exchange::answer).
Task<void> refuse_dimensions(Exchange& exchange) {
  return exchange.refuse(Code::kInvalidArgument,
                         "dimensions: this model's vectors have one size only", "dimensions",
                         "unsupported_parameter");
}

// A replica has "inputs" where a client has "input".
ApiError about_the_input(Error error) {
  constexpr std::string_view kTheirs = "inputs[";
  const bool named = error.message.starts_with(kTheirs);
  const bool too_long = named && error.message.find("context") != std::string::npos;
  if (named) error.message.erase(kTheirs.size() - 2, 1);
  ApiError shown = to_api_error(std::move(error));
  if (named) shown.param = shown.error.message.substr(0, shown.error.message.find(' '));
  if (too_long) shown.code = "context_length_exceeded";
  return shown;
}

}  // namespace

template <typename Answer, typename Call>
Task<Result<Answer>> Endpoints::anywhere(Exchange& exchange, const Routing& routing, Call call) {
  std::vector<ReplicaId> tried;
  std::optional<Error> failure;
  for (std::uint32_t attempts = 1;; ++attempts) {
    const auto choice = pool_.choose(routing, tried);
    if (!choice) co_return tl::unexpected(failure ? *failure : choice.error());
    tried.push_back(choice->replica);
    exchange.note(*choice, attempts);
    exchange.record.model = choice->model;
    Result<Answer> answer = co_await call(*choice);
    const bool again = !answer && attempts < limits_.max_attempts &&
                       (answer.error().code == Code::kUnavailable ||
                        answer.error().code == Code::kResourceExhausted);
    if (!again) {
      exchange.common.add("x-served-by", choice->name);
      exchange.common.add("x-attempts", std::to_string(attempts));
      co_return answer;
    }
    failure = std::move(answer.error());
  }
}

Task<void> Endpoints::embeddings(Exchange& exchange, RequestTimes times) {
  auto asked = parse_embedding(exchange.request, limits_, exchange.trusted);
  if (!asked) co_return co_await exchange.answer_error(asked.error());
  exchange.record.unknown_fields = asked->unknown_fields;
  if (!allowed(exchange, asked->routing)) co_return co_await exchange.refuse_model();
  if (asked->dimensions != 0 &&
      is_other_size(pool_.models(), asked->routing.models, asked->dimensions)) {
    co_return co_await refuse_dimensions(exchange);
  }
  std::size_t bytes = 0;
  for (const std::string& input : asked->inputs) bytes += input.size();
  auto reserved = exchange.reserve(rates_, tokens_in(bytes));
  if (!reserved) co_return co_await exchange.answer_error(reserved.error());
  auto answer = co_await anywhere<EmbedAnswer>(
      exchange, asked->routing, [&](const ReplicaPool::Choice& choice) {
        return exchange.links.embed(choice.replica, choice.model, asked->inputs,
                                    exchange.call_context(times.deadline));
      });
  if (!answer) co_return co_await exchange.answer_error(about_the_input(answer.error()));
  reserved->settle(answer->prompt_tokens);
  const std::size_t size = answer->embeddings.empty() ? 0 : answer->embeddings.front().size();
  if (asked->dimensions != 0 && asked->dimensions != size)  // of a replica that never said
    co_return co_await refuse_dimensions(exchange);
  exchange.record.prompt_tokens = answer->prompt_tokens;
  co_await exchange.answer_json(embeddings_json(*answer, asked->base64));
}

Task<void> Endpoints::tokenize(Exchange& exchange, RequestTimes times) {
  auto asked = parse_tokenize(exchange.request, limits_, exchange.trusted);
  if (!asked) co_return co_await exchange.answer_error(asked.error());
  exchange.record.unknown_fields = asked->unknown_fields;
  if (!allowed(exchange, asked->routing)) co_return co_await exchange.refuse_model();
  auto reserved = exchange.reserve(rates_, 0);
  if (!reserved) co_return co_await exchange.answer_error(reserved.error());
  auto answer = co_await anywhere<TokenCount>(
      exchange, asked->routing, [&](const ReplicaPool::Choice& choice) {
        return exchange.links.count_tokens(choice.replica, choice.model, asked->prompt,
                                           exchange.call_context(times.deadline));
      });
  if (!answer) co_return co_await exchange.answer_error(answer.error());
  reserved->settle(0);
  co_await exchange.answer_json(
      concat("{\"count\":", answer->tokens, ",\"max_model_len\":", answer->context_tokens, "}"));
}

Task<void> Endpoints::models(Exchange& exchange) {
  std::vector<ModelEntry> models = pool_.models();
  std::erase_if(models, [&](const ModelEntry& model) {
    return !allows_model(exchange.caller->limits, model.name);
  });
  return exchange.answer_json(models_json(models));
}

Task<void> Endpoints::model(Exchange& exchange, std::string_view name) {
  for (const ModelEntry& model : pool_.models()) {
    if (is_called(model, name) && allows_model(exchange.caller->limits, model.name))
      co_return co_await exchange.answer_json(model_json(model));
  }
  co_await exchange.refuse(Code::kNotFound, "no replica serves that model", "model",
                           "model_not_found");
}

Task<void> Endpoints::health(Exchange& exchange) {
  return exchange.answer_json("{\"status\":\"ok\"}");
}

Task<void> Endpoints::ready(Exchange& exchange, bool draining) {
  if (!draining && pool_.ready()) return exchange.answer_json("{\"status\":\"ready\"}");
  return exchange.refuse(Code::kUnavailable,
                         draining ? "the gateway is draining" : "no replica takes requests");
}

Task<void> Endpoints::metrics(Exchange& exchange) {
  return exchange.answer(exchange.head(200, "text/plain; version=0.0.4; charset=utf-8"),
                         metrics_.text());
}

}  // namespace sluice
