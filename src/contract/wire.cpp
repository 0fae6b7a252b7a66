#include "contract/wire.h"

#include <grpcpp/support/status.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/concat.h"
#include "inference.pb.h"

namespace sluice {
namespace {

tl::unexpected<Error> unserved(std::string_view field) {
  return fail(Code::kUnimplemented, concat(field, " is not served"));
}

// A word of the client's that may stand in an error message: 32 bytes at most, and nothing but
// letters, digits, _ and -.
std::string safe_word(std::string_view word) {
  constexpr std::size_t kMaxBytes = 32;
  const auto is_safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  std::string safe(word.substr(0, kMaxBytes));
  std::replace_if(
      safe.begin(), safe.end(), [&](char c) { return !is_safe(c); }, '?');
  return safe;
}

Result<Role> role_from_wire(std::string_view role, std::string_view field) {
  if (role == "user") return Role::kUser;
  if (role == "assistant") return Role::kAssistant;
  if (role == "system" || role == "developer") return Role::kSystem;
  if (role == "tool") return Role::kTool;
  return invalid(concat(field, ".role is \"", safe_word(role),
                        "\"; it must be system, developer, user, assistant or tool"));
}

Result<std::vector<Part>> parts_from_wire(inference::Message& message, std::string_view field) {
  std::vector<Part> parts;
  if (message.parts().empty()) {
    parts.push_back(
        {std::move(*message.mutable_content()), std::move(*message.mutable_mime_type())});
    return parts;
  }
  if (!message.content().empty()) return invalid(concat(field, " has both content and parts"));
  if (!message.mime_type().empty()) {
    return invalid(concat(field, ".mime_type says what content is; parts have their own"));
  }
  parts.reserve(static_cast<std::size_t>(message.parts_size()));
  for (inference::Part& part : *message.mutable_parts()) {
    parts.push_back({std::move(*part.mutable_content()), std::move(*part.mutable_mime_type()),
                     part.cache_breakpoint()});
  }
  return parts;
}

Result<Message> message_from_wire(inference::Message& message, std::string_view field) {
  if (!message.name().empty()) return unserved(concat(field, ".name"));
  if (!message.tool_calls().empty()) return unserved(concat(field, ".tool_calls"));
  if (!message.tool_call_id().empty()) return unserved(concat(field, ".tool_call_id"));
  const Result<Role> role = role_from_wire(message.role(), field);
  if (!role) return tl::unexpected(role.error());
  Result<std::vector<Part>> parts = parts_from_wire(message, field);
  if (!parts) return tl::unexpected(std::move(parts.error()));
  return Message{*role, std::move(*parts)};
}

// GenerateRequest and CountTokensRequest name their prompt in the same way.
template <typename Request>
Result<PromptSource> prompt_from_wire(Request& request) {
  PromptSource source;
  if (request.has_prompt()) {
    if (!request.messages().empty()) return invalid("prompt and messages exclude each other");
    source.raw = std::move(*request.mutable_prompt());
    return source;
  }
  source.messages.reserve(static_cast<std::size_t>(request.messages_size()));
  for (inference::Message& message : *request.mutable_messages()) {
    Result<Message> taken =
        message_from_wire(message, concat("messages[", source.messages.size(), "]"));
    if (!taken) return tl::unexpected(std::move(taken.error()));
    source.messages.push_back(std::move(*taken));
  }
  return source;
}

Result<void> refuse_unserved(const inference::GenerateRequest& request) {
  using Format = inference::ResponseFormat;
  switch (request.response_format().format_case()) {
    case Format::FORMAT_NOT_SET:
    case Format::kText:
      break;
    case Format::kJsonObject:
      return unserved("response_format.json_object");
    case Format::kJsonSchema:
      return unserved("response_format.json_schema");
    case Format::kGrammar:
      return unserved("response_format.grammar");
  }
  if (!request.tools().empty()) return unserved("tools");
  if (request.has_tool_choice()) return unserved("tool_choice");
  if (request.echo()) return unserved("echo");
  return {};
}

Sampling sampling_from_wire(const inference::GenerateRequest& request) {
  Sampling sampling;
  if (request.has_temperature()) sampling.temperature = request.temperature();
  if (request.has_top_p()) sampling.top_p = request.top_p();
  if (request.has_top_k()) sampling.top_k = request.top_k();
  if (request.has_min_p()) sampling.min_p = request.min_p();
  if (request.has_frequency_penalty()) sampling.frequency_penalty = request.frequency_penalty();
  if (request.has_presence_penalty()) sampling.presence_penalty = request.presence_penalty();
  if (request.has_repetition_penalty()) sampling.repetition_penalty = request.repetition_penalty();
  if (request.has_seed()) sampling.seed = request.seed();
  if (request.has_top_logprobs()) sampling.top_logprobs = request.top_logprobs();
  sampling.logit_bias.assign(request.logit_bias().begin(), request.logit_bias().end());
  return sampling;
}

CacheHints cache_from_wire(inference::CacheHints& hints) {
  CacheHints cache;
  cache.no_cache = hints.no_cache();
  cache.no_store = hints.no_store();
  if (hints.has_ttl_seconds()) cache.ttl_seconds = hints.ttl_seconds();
  cache.salt = std::move(*hints.mutable_salt());
  return cache;
}

Stopping stopping_from_wire(inference::GenerateRequest& request) {
  Stopping stopping;
  if (request.has_max_tokens()) stopping.max_tokens = request.max_tokens();
  if (request.has_min_tokens()) stopping.min_tokens = request.min_tokens();
  if (request.has_ignore_eos()) stopping.ignore_eos = request.ignore_eos();
  stopping.stop.assign(std::make_move_iterator(request.mutable_stop()->begin()),
                       std::make_move_iterator(request.mutable_stop()->end()));
  return stopping;
}

void candidate_to_wire(TokenLogprob::Candidate&& candidate, inference::TokenLogprob& out) {
  out.set_token(candidate.token);
  out.set_piece(std::move(candidate.piece));
  out.set_logprob(candidate.logprob);
}

inference::FinishReason to_wire(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::kStop:
      return inference::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return inference::FINISH_REASON_LENGTH;
  }
  return inference::FINISH_REASON_UNSPECIFIED;
}

void to_wire(const Timings& timings, inference::Timings& out) {
  const auto us = [](std::chrono::microseconds time) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count()));
  };
  out.set_queued_us(us(timings.queued));
  out.set_prefill_us(us(timings.prefill));
  out.set_decode_us(us(timings.decode));
  out.set_parked_us(us(timings.parked));
  out.set_recomputed_tokens(timings.recomputed_tokens);
}

}  // namespace

Result<GenerationRequest> from_wire(inference::GenerateRequest&& request) {
  if (auto served = refuse_unserved(request); !served) return tl::unexpected(served.error());
  Result<PromptSource> prompt = prompt_from_wire(request);
  if (!prompt) return tl::unexpected(std::move(prompt.error()));

  GenerationRequest taken;
  taken.prompt = std::move(*prompt);
  taken.model = std::move(*request.mutable_model());
  taken.sampling = sampling_from_wire(request);
  taken.stopping = stopping_from_wire(request);
  if (request.has_n()) taken.n = request.n();
  if (request.has_priority()) taken.priority = request.priority();
  taken.session_id = std::move(*request.mutable_session_id());
  if (request.has_cache()) taken.cache = cache_from_wire(*request.mutable_cache());
  return taken;
}

Result<PromptSource> from_wire(inference::CountTokensRequest&& request) {
  return prompt_from_wire(request);
}

ResponseEncoder::ResponseEncoder(std::string model, std::uint32_t prompt_tokens,
                                 std::uint32_t choices)
    : model_(std::move(model)), prompt_tokens_(prompt_tokens), choices_(choices) {}

void ResponseEncoder::encode(Delta&& delta, inference::GenerateResponse& out) {
  CHECK(delta.index < choices_.size(), "a delta is of one of its request's choices");
  Choice& choice = choices_[delta.index];
  choice.tokens += delta.tokens;

  out.Clear();
  if (!model_.empty()) out.set_model(std::exchange(model_, {}));
  out.set_index(delta.index);
  out.set_prompt_tokens(prompt_tokens_);
  out.set_completion_tokens(choice.tokens);
  out.set_offset(choice.offset);
  choice.offset += delta.bytes.size();
  out.set_delta(std::move(delta.bytes));
  for (TokenLogprob& logprob : delta.logprobs) {
    inference::TokenLogprob& token = *out.add_logprobs();
    candidate_to_wire(std::move(logprob.chosen), token);
    for (auto& candidate : logprob.top) candidate_to_wire(std::move(candidate), *token.add_top());
  }
  if (delta.finish_reason) out.set_finish_reason(to_wire(*delta.finish_reason));
  if (!delta.matched_stop.empty()) out.set_matched_stop(std::move(delta.matched_stop));
}

void ResponseEncoder::encode_end(const Usage& usage, inference::GenerateResponse& out) const {
  if (!model_.empty()) out.set_model(model_);
  out.set_done(true);
  out.set_prompt_tokens(usage.prompt_tokens);
  out.set_completion_tokens(usage.completion_tokens);
  out.set_cached_tokens(usage.cached_tokens);
  out.set_cache_write_tokens(usage.cache_write_tokens);
  to_wire(usage.timings, *out.mutable_timings());
}

void to_wire(const Load& load, inference::Load& out) {
  out.set_running(load.running);
  out.set_waiting(load.waiting);
  out.set_parked(load.parked);
  out.set_kv_used_tokens(load.kv_used_tokens);
  out.set_kv_capacity_tokens(load.kv_capacity_tokens);
  out.set_tokens_per_second(load.tokens_per_second);
  out.set_prefill_backlog_tokens(load.prefill_backlog_tokens);
  out.set_draining(load.draining);
}

void to_wire(const Error& error, inference::Status& out) {
  out.set_code(static_cast<int>(error.code));
  out.set_message(error.message);
  if (error.retry_after) {
    out.set_retry_after_ms(static_cast<std::uint32_t>(std::clamp<std::int64_t>(
        error.retry_after->count(), 0, std::numeric_limits<std::uint32_t>::max())));
  }
}

grpc::Status to_grpc(const Error& error) {
  return {static_cast<grpc::StatusCode>(error.code), error.message};
}

int to_http(Code code) noexcept {
  switch (code) {
    case Code::kInvalidArgument:
      return 400;
    case Code::kUnauthenticated:
      return 401;
    case Code::kPermissionDenied:
      return 403;
    case Code::kNotFound:
      return 404;
    case Code::kResourceExhausted:
      return 429;
    case Code::kCancelled:
      return 499;
    case Code::kInternal:
      return 500;
    case Code::kUnimplemented:
      return 501;
    case Code::kUnavailable:
      return 503;
    case Code::kDeadlineExceeded:
      return 504;
  }
  return 500;
}

}  // namespace sluice
