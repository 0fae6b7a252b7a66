#include "gateway/completion.h"

#include <algorithm>
#include <utility>

#include "base/concat.h"
#include "contract/wire.h"

namespace sluice {
namespace {

constexpr std::string_view kComment = ": keepalive\n";
constexpr std::uint64_t kUsualAnswerTokens = 256;  // where the request gives no max_tokens

std::size_t prompt_bytes(const PromptSource& prompt) noexcept {
  std::size_t bytes = prompt.raw ? prompt.raw->size() : 0;
  for (const Message& message : prompt.messages) {
    for (const Part& part : message.parts) bytes += part.bytes.size();
  }
  return bytes;
}

std::uint64_t most_tokens(const OpenAiRequest& request) noexcept {
  std::uint64_t tokens = 0;
  for (const GenerationRequest& generation : request.generations) {
    const auto answer =
        generation.stopping.max_tokens
            ? static_cast<std::uint64_t>(std::max(*generation.stopping.max_tokens, 0))
            : kUsualAnswerTokens;
    tokens += tokens_in(prompt_bytes(generation.prompt)) +
              answer * static_cast<std::uint64_t>(std::max(generation.n, 1));
  }
  return tokens;
}

std::chrono::milliseconds milliseconds_in(Duration duration) noexcept {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

double seconds_in(Duration duration) noexcept {
  return std::chrono::duration<double>(duration).count();
}

std::uint32_t choices_of(const OpenAiRequest& request) noexcept {
  std::uint32_t choices = 0;
  for (const GenerationRequest& generation : request.generations)
    choices += static_cast<std::uint32_t>(std::max(generation.n, 1));
  return choices;
}

}  // namespace

Completion::Completion(const Environment& environment, Exchange& exchange, OpenAiRequest request,
                       RequestTimes times)
    : environment_(environment),
      exchange_(exchange),
      request_(std::move(request)),
      times_(times),
      alarm_(exchange.io, wake_up_) {
  exchange_.responder.when_expired([this] { alarm_.set(environment_.clock.now()); });
}

Completion::~Completion() {
  exchange_.responder.when_expired(nullptr);
  note_outcome();
}

Task<void> Completion::run() {
  const ApiKey& caller = *exchange_.caller;
  exchange_.record.unknown_fields = request_.unknown_fields;
  exchange_.record.stream = request_.shape.stream;
  std::erase_if(request_.routing.models,
                [&](const std::string& model) { return !allows_model(caller.limits, model); });
  if (request_.routing.models.empty()) co_return co_await exchange_.refuse_model();
  auto reserved =
      exchange_.reserve(environment_.rates, most_tokens(request_), choices_of(request_));
  if (!reserved) co_return co_await exchange_.answer_error(reserved.error());
  reservation_.emplace(std::move(*reserved));
  for (const std::string& warning : request_.warnings)
    exchange_.common.add("x-gateway-warnings", warning);
  // Tenants share no prefix and no affinity.
  request_.routing.affinity = concat(exchange_.tenant, '\n', request_.routing.affinity);
  for (GenerationRequest& generation : request_.generations)
    generation.cache.salt = concat(exchange_.tenant, '\n', generation.cache.salt);
  co_await answer();
}

Task<void> Completion::answer() {
  std::optional<Error> failure;
  for (std::uint32_t attempts = 1;; ++attempts) {
    const auto choice = environment_.pool.choose(request_.routing, tried_);
    if (!choice && !failure) failure = choice.error();
    if (!choice) co_return co_await fail(*failure);
    tried_.push_back(choice->replica);
    exchange_.note(*choice, attempts);
    failure = co_await attempt(*choice);
    if (!failure) co_return;
    const bool again = may_retry(*failure) && attempts < environment_.limits.max_attempts;
    if (!again) co_return co_await fail(*failure);
  }
}

bool Completion::may_retry(const Error& error) const noexcept {
  if (shown_ || exchange_.responder.expired()) return false;
  if (environment_.clock.now() >= times_.deadline) return false;
  switch (error.code) {
    case Code::kUnavailable:
    case Code::kResourceExhausted:
    case Code::kInternal:
    case Code::kDeadlineExceeded:  // of the first token: the whole one is not over yet
      return true;
    default:
      return false;
  }
}

void Completion::start(const ReplicaPool::Choice& choice) {
  generations_.clear();
  encoder_.emplace(request_.shape, exchange_.identity.request_id, created_, choices_of(request_));
  out_.clear();
  unfinished_ = request_.generations.size();
  started_at_ = environment_.clock.now();
  first_token_at_.reset();
  const CallContext context = exchange_.call_context(times_.deadline);
  std::uint32_t first_choice = 0;
  for (GenerationRequest& generation : request_.generations) {
    generation.model = choice.model;
    generations_.push_back(
        {exchange_.links.generate(choice.replica, generation, context, wake_up_), first_choice});
    first_choice += static_cast<std::uint32_t>(std::max(generation.n, 1));
  }
}

Task<std::optional<Error>> Completion::attempt(const ReplicaPool::Choice& choice) {
  start(choice);
  for (std::optional<Error> failure;;) {
    const bool something = collect(failure);
    if (failure) co_return failure;
    if (unfinished_ == 0) {
      co_await finish();
      co_return std::nullopt;
    }
    if (exchange_.responder.expired()) co_return Error{Code::kUnavailable, kGraceOver};
    if (!out_.empty() && !co_await send()) co_return std::nullopt;
    if (something) continue;
    const TimePoint now = environment_.clock.now();
    // The replica knows the deadline as well, but may be frozen or cut off.
    if (now >= times_.deadline)
      co_return Error{Code::kDeadlineExceeded, "the request's time is over"};
    if (!first_token_at_ && now >= times_.first_token_by)
      co_return Error{Code::kDeadlineExceeded, "the first token did not come in the time given"};
    if (!co_await keep_alive()) co_return std::nullopt;
    alarm_.set(next_event());
    co_await wake_up_.wait();
  }
}

// Takes what has come; false: nothing had.
bool Completion::collect(std::optional<Error>& failure) {
  bool something = false;
  for (Generation& generation : generations_) {
    if (generation.ended) continue;
    Arrival arrival = generation.stream.take();
    if (!arrival.deltas.empty()) {
      something = true;
      if (!first_token_at_) note_first_token();
      encoder_->add(arrival.deltas, generation.first_choice, out_);
      for (const ReceivedDelta& received : arrival.deltas) {
        if (!received.model.empty()) exchange_.record.model = received.model;
        if (received.delta.finish_reason)
          exchange_.record.finish_reason =
              *received.delta.finish_reason == FinishReason::kStop ? "stop" : "length";
      }
    }
    if (!arrival.end) continue;
    something = generation.ended = true;
    --unfinished_;
    if (!*arrival.end && !failure) failure = std::move(arrival.end->error());
  }
  return something;
}

// Not a coroutine (see Exchange::answer).
Task<bool> Completion::write(std::string_view bytes) {
  if (exchange_.responder.committed()) return exchange_.responder.write(bytes);
  return exchange_.responder.begin(answer_head("text/event-stream; charset=utf-8"), bytes);
}

Task<bool> Completion::send() {
  shown_ = true;
  last_write_ = environment_.clock.now();
  exchange_.record.bytes_out += out_.size();
  const bool sent = co_await write(out_);
  out_.clear();
  gone_ = !sent;
  co_return sent;
}

Task<bool> Completion::keep_alive() {
  const TimePoint now = environment_.clock.now();
  if (now < comment_due()) co_return true;
  environment_.metrics.keepalives.add();
  last_write_ = now;
  const bool sent = co_await write(kComment);
  gone_ = !sent;
  co_return sent;
}

TimePoint Completion::comment_due() const noexcept {
  const GatewayLimits& limits = environment_.limits;
  if (!request_.shape.stream) return kForever;
  if (!exchange_.responder.committed()) return exchange_.request.arrived_at + limits.commit_after;
  return limits.sse_keepalive.count() > 0 ? last_write_ + limits.sse_keepalive : kForever;
}

TimePoint Completion::next_event() const noexcept {
  const TimePoint first = first_token_at_ ? kForever : times_.first_token_by;
  return std::min({comment_due(), first, times_.deadline});
}

Task<void> Completion::finish() {
  encoder_->finish(out_);
  exchange_.record.bytes_out += out_.size();
  exchange_.record.status = 200;
  bool sent = false;
  if (!request_.shape.stream) {
    ResponseHead head = answer_head("application/json");
    const auto queued = milliseconds_in(encoder_->usage().timings.queued);
    head.headers.add("x-queue-ms", std::to_string(queued.count()));
    sent = co_await exchange_.responder.respond(std::move(head), std::move(out_));
  } else if (exchange_.responder.committed()) {
    sent = co_await exchange_.responder.end(out_);
  } else {
    sent = co_await write(out_);
    if (sent) sent = co_await exchange_.responder.end("");
  }
  gone_ = !sent;
}

Task<void> Completion::fail(const Error& error) {
  ApiError shown = to_api_error(error);
  const bool in_the_middle = first_token_at_.has_value();
  if (exchange_.responder.expired()) {
    shown.code = kDrainingCode;
  } else {
    const bool lost = in_the_middle && error.code == Code::kUnavailable;
    if (lost && shown.code.empty()) shown.code = "replica_lost";
    shown.work_spent = shown.work_spent || in_the_middle;
  }
  if (!exchange_.responder.committed()) co_return co_await exchange_.answer_error(shown);
  exchange_.record.failure = shown.error.code;
  exchange_.record.status = 200;
  environment_.metrics.cut.add();
  // What came before the error is not lost.
  encoder_->fail(shown, out_);
  gone_ = !co_await exchange_.responder.end(out_);
}

ResponseHead Completion::answer_head(const char* content_type) const {
  ResponseHead head = exchange_.head(200, content_type);
  HttpHeaders& headers = head.headers;
  headers.add("cache-control", "no-cache");
  headers.add("x-accel-buffering", "no");
  headers.add("x-served-by", exchange_.record.replica);
  if (!exchange_.record.model.empty()) headers.add("x-served-model", exchange_.record.model);
  headers.add("x-attempts", std::to_string(exchange_.record.attempts));
  headers.add("x-routing-reason", std::string(exchange_.record.routing_reason));
  if (exchange_.record.attempts > 1) headers.add("x-fallback-reason", "replica-failed");
  const TimePoint now = environment_.clock.now();
  headers.add("openai-processing-ms",
              std::to_string(milliseconds_in(now - exchange_.request.arrived_at).count()));
  if (exchange_.record.overhead)
    headers.add("x-gateway-overhead-us", std::to_string(exchange_.record.overhead->count()));
  return head;
}

void Completion::note_first_token() {
  const TimePoint now = environment_.clock.now();
  first_token_at_ = now;
  const Duration before = started_at_ - exchange_.request.arrived_at;
  exchange_.record.ttft = milliseconds_in(now - exchange_.request.arrived_at);
  exchange_.record.overhead = std::chrono::duration_cast<std::chrono::microseconds>(before);
  environment_.metrics.ttft_seconds.observe(seconds_in(now - exchange_.request.arrived_at));
  environment_.metrics.overhead_seconds.observe(seconds_in(before));
}

void Completion::note_outcome() {
  if (gone_ && !exchange_.responder.expired()) exchange_.record.status = to_http(Code::kCancelled);
  if (!encoder_) return;
  const Usage& usage = encoder_->usage();
  exchange_.record.prompt_tokens = usage.prompt_tokens;
  exchange_.record.completion_tokens = usage.completion_tokens;
  exchange_.record.cached_tokens = usage.cached_tokens;
  exchange_.record.queue = milliseconds_in(usage.timings.queued);
  environment_.metrics.prompt_tokens.add(usage.prompt_tokens);
  environment_.metrics.completion_tokens.add(usage.completion_tokens);
  environment_.metrics.cached_tokens.add(usage.cached_tokens);
  if (reservation_) reservation_->settle(usage.prompt_tokens + usage.completion_tokens);
}

}  // namespace sluice
