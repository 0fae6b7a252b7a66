#include "contract/wire_client.h"

#include <grpcpp/support/status.h>

#include <chrono>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "base/concat.h"
#include "contract/utf8.h"
#include "inference.pb.h"

namespace sluice {
namespace {

Result<void> check_text(std::string_view text, std::string_view field) {
  const auto at = find_invalid_utf8(text);
  if (!at) return {};
  return invalid(concat(field, " is not valid UTF-8 (byte ", *at, ")"));
}

Result<void> to_wire(const Message& message, std::size_t index, inference::Message& out) {
  out.set_role(role_name(message.role));
  for (const Part& part : message.parts) {
    if (auto text = check_text(part.mime_type, concat("messages[", index, "].mime_type")); !text)
      return text;
  }
  const bool plain = message.parts.size() == 1 && !message.parts.front().cache_breakpoint;
  if (plain) {
    out.set_content(message.parts.front().bytes);
    out.set_mime_type(message.parts.front().mime_type);
    return {};
  }
  for (const Part& part : message.parts) {
    inference::Part& added = *out.add_parts();
    added.set_content(part.bytes);
    added.set_mime_type(part.mime_type);
    added.set_cache_breakpoint(part.cache_breakpoint);
  }
  return {};
}

// GenerateRequest and CountTokensRequest name their prompt in the same way.
template <typename Request>
Result<void> prompt_to_wire(const PromptSource& prompt, Request& out) {
  if (prompt.raw) {
    out.set_prompt(*prompt.raw);
    return {};
  }
  for (std::size_t i = 0; i < prompt.messages.size(); ++i) {
    if (auto taken = to_wire(prompt.messages[i], i, *out.add_messages()); !taken) return taken;
  }
  return {};
}

// What has its default is not sent.
void sampling_to_wire(const Sampling& sampling, inference::GenerateRequest& out) {
  const Sampling usual;
  out.set_temperature(sampling.temperature);
  if (sampling.top_p != usual.top_p) out.set_top_p(sampling.top_p);
  if (sampling.top_k != usual.top_k) out.set_top_k(sampling.top_k);
  if (sampling.min_p != usual.min_p) out.set_min_p(sampling.min_p);
  if (sampling.frequency_penalty != usual.frequency_penalty)
    out.set_frequency_penalty(sampling.frequency_penalty);
  if (sampling.presence_penalty != usual.presence_penalty)
    out.set_presence_penalty(sampling.presence_penalty);
  if (sampling.repetition_penalty != usual.repetition_penalty)
    out.set_repetition_penalty(sampling.repetition_penalty);
  if (sampling.seed) out.set_seed(*sampling.seed);
  for (const auto& [token, bias] : sampling.logit_bias) (*out.mutable_logit_bias())[token] = bias;
  if (sampling.top_logprobs) out.set_top_logprobs(*sampling.top_logprobs);
}

void stopping_to_wire(const Stopping& stopping, inference::GenerateRequest& out) {
  if (stopping.max_tokens) out.set_max_tokens(*stopping.max_tokens);
  if (stopping.min_tokens != 0) out.set_min_tokens(stopping.min_tokens);
  if (stopping.ignore_eos) out.set_ignore_eos(true);
  for (const std::string& stop : stopping.stop) out.add_stop(stop);
}

void cache_to_wire(const CacheHints& cache, inference::GenerateRequest& out) {
  if (!cache.no_cache && !cache.no_store && !cache.ttl_seconds && cache.salt.empty()) return;
  inference::CacheHints& hints = *out.mutable_cache();
  hints.set_no_cache(cache.no_cache);
  hints.set_no_store(cache.no_store);
  if (cache.ttl_seconds) hints.set_ttl_seconds(*cache.ttl_seconds);
  hints.set_salt(cache.salt);
}

TokenLogprob::Candidate candidate_from_wire(inference::TokenLogprob& token) {
  return {token.token(), token.logprob(), std::move(*token.mutable_piece())};
}

std::optional<FinishReason> from_wire(inference::FinishReason reason) noexcept {
  if (reason == inference::FINISH_REASON_STOP) return FinishReason::kStop;
  if (reason == inference::FINISH_REASON_LENGTH) return FinishReason::kLength;
  return std::nullopt;
}

Usage usage_from_wire(const inference::GenerateResponse& last) {
  const auto us = [](std::uint64_t count) {
    return std::chrono::microseconds{static_cast<std::int64_t>(count)};
  };
  const inference::Timings& timings = last.timings();
  return {.prompt_tokens = last.prompt_tokens(),
          .completion_tokens = last.completion_tokens(),
          .cached_tokens = last.cached_tokens(),
          .cache_write_tokens = last.cache_write_tokens(),
          .timings = {.queued = us(timings.queued_us()),
                      .prefill = us(timings.prefill_us()),
                      .decode = us(timings.decode_us()),
                      .parked = us(timings.parked_us()),
                      .recomputed_tokens = timings.recomputed_tokens()}};
}

Code code_from_number(int number) noexcept {
  switch (number) {
    case grpc::StatusCode::CANCELLED:
      return Code::kCancelled;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
      return Code::kInvalidArgument;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Code::kDeadlineExceeded;
    case grpc::StatusCode::NOT_FOUND:
      return Code::kNotFound;
    case grpc::StatusCode::PERMISSION_DENIED:
      return Code::kPermissionDenied;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Code::kResourceExhausted;
    case grpc::StatusCode::UNIMPLEMENTED:
      return Code::kUnimplemented;
    case grpc::StatusCode::UNAVAILABLE:
      return Code::kUnavailable;
    case grpc::StatusCode::UNAUTHENTICATED:
      return Code::kUnauthenticated;
    default:
      return Code::kInternal;
  }
}

}  // namespace

const char* role_name(Role role) noexcept {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      return "tool";
  }
  return "user";
}

Result<void> to_wire(const GenerationRequest& request, inference::GenerateRequest& out) {
  if (auto text = check_text(request.model, "model"); !text) return text;
  if (auto text = check_text(request.session_id, "session_id"); !text) return text;
  if (auto text = check_text(request.cache.salt, "cache.salt"); !text) return text;
  for (std::size_t i = 0; i < request.stopping.stop.size(); ++i) {
    if (auto text = check_text(request.stopping.stop[i], concat("stop[", i, "]")); !text)
      return text;
  }
  out.set_model(request.model);
  sampling_to_wire(request.sampling, out);
  stopping_to_wire(request.stopping, out);
  if (request.n != 1) out.set_n(request.n);
  if (request.priority != 0) out.set_priority(request.priority);
  out.set_session_id(request.session_id);
  cache_to_wire(request.cache, out);
  return prompt_to_wire(request.prompt, out);
}

Result<void> to_wire(const PromptSource& prompt, inference::CountTokensRequest& out) {
  return prompt_to_wire(prompt, out);
}

Result<ReceivedDelta> ResponseDecoder::decode(inference::GenerateResponse& response) {
  if (response.index() >= choices_)
    return fail(Code::kInternal,
                concat("the replica sent choice ", response.index(), " of ", choices_));
  if (response.index() >= tokens_.size()) tokens_.resize(response.index() + 1);
  std::uint32_t& so_far = tokens_[response.index()];
  // The last message counts all choices together.
  const std::uint32_t counted =
      response.done() ? std::accumulate(tokens_.begin(), tokens_.end(), 0U) : so_far;
  if (response.completion_tokens() < counted)
    return fail(Code::kInternal, "the replica counts its tokens backwards");

  ReceivedDelta received;
  Delta& delta = received.delta;
  delta.index = response.index();
  delta.tokens = response.completion_tokens() - counted;
  delta.bytes = std::move(*response.mutable_delta());
  so_far += delta.tokens;
  delta.logprobs.reserve(static_cast<std::size_t>(response.logprobs_size()));
  for (inference::TokenLogprob& token : *response.mutable_logprobs()) {
    TokenLogprob& added = delta.logprobs.emplace_back();
    added.chosen = candidate_from_wire(token);
    for (inference::TokenLogprob& top : *token.mutable_top())
      added.top.push_back(candidate_from_wire(top));
  }
  delta.finish_reason = from_wire(response.finish_reason());
  delta.matched_stop = response.matched_stop();
  received.prompt_tokens = response.prompt_tokens();
  received.completion_tokens = so_far;
  received.model = response.model();
  if (response.done()) received.usage = usage_from_wire(response);
  return received;
}

Result<void> from_wire(const inference::Status& status) {
  if (status.code() == 0) return {};
  Error error{code_from_number(status.code()), status.message()};
  if (status.has_retry_after_ms())
    error.retry_after = std::chrono::milliseconds(status.retry_after_ms());
  return tl::unexpected(std::move(error));
}

Load from_wire(const inference::Load& load) {
  return {.running = load.running(),
          .waiting = load.waiting(),
          .parked = load.parked(),
          .kv_used_tokens = load.kv_used_tokens(),
          .kv_capacity_tokens = load.kv_capacity_tokens(),
          .tokens_per_second = load.tokens_per_second(),
          .prefill_backlog_tokens = load.prefill_backlog_tokens(),
          .draining = load.draining()};
}

Result<void> from_grpc(const grpc::Status& status) {
  if (status.ok()) return {};
  return fail(code_from_number(static_cast<int>(status.error_code())), status.error_message());
}

}  // namespace sluice
