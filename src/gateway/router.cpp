#include "gateway/router.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/concat.h"
#include "contract/wire.h"

namespace sluice {
namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";

// Counts one while it lives.
class Running {
 public:
  Running(std::atomic<std::uint32_t>& count, Gauge& gauge) noexcept
      : now_(++count), count_(count), gauge_(gauge) {
    gauge_.add(1);
  }
  ~Running() {
    --count_;
    gauge_.add(-1);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  [[nodiscard]] std::uint32_t now() const noexcept { return now_; }

 private:
  const std::uint32_t now_;
  std::atomic<std::uint32_t>& count_;
  Gauge& gauge_;
};

bool needs_key(Route route) noexcept {
  return route != Route::kHealth && route != Route::kReady && route != Route::kOther;
}

bool has_body(Route route) noexcept {
  switch (route) {
    case Route::kChat:
    case Route::kCompletions:
    case Route::kResponses:
    case Route::kEmbeddings:
    case Route::kTokenize:
      return true;
    default:
      return false;
  }
}

// What a load balancer and an operator look at.
bool tells_of_the_process(Route route) noexcept {
  return route == Route::kHealth || route == Route::kReady || route == Route::kMetrics;
}

// JSON, or nothing said: curl's default for -d is a form, which is refused with a hint.
bool is_json(const HttpHeaders& headers) noexcept {
  const std::string_view type = headers.value("content-type");
  std::string_view kind = type.substr(0, type.find(';'));
  while (kind.ends_with(' ') || kind.ends_with('\t')) kind.remove_suffix(1);
  return type.empty() || same_word(kind, "application/json");
}

Error too_busy(const GatewayLimits& limits) {
  return {Code::kUnavailable,
          concat("the gateway answers ", limits.max_running_requests,
                 " requests already (--max-running-requests)"),
          std::chrono::seconds{1}};
}

// Not coroutines (see Exchange::answer).
Task<void> refuse_method(Exchange& exchange, const char* method) {
  exchange.record.failure = Code::kInvalidArgument;
  ResponseHead head = exchange.head(405, "application/json");
  head.headers.add("allow", method);
  return exchange.answer(
      std::move(head),
      to_json(api_error(Code::kInvalidArgument, concat("this path takes ", method, " only"), "",
                        "method_not_allowed")));
}

Task<void> refuse_media_type(Exchange& exchange) {
  exchange.record.failure = Code::kInvalidArgument;
  return exchange.answer(exchange.head(415, "application/json"),
                         to_json(api_error(Code::kInvalidArgument,
                                           "the body must be JSON (Content-Type: application/json)",
                                           "", "unsupported_media_type")));
}

}  // namespace

Router::Match Router::match(std::string_view path) noexcept {
  struct Fixed {
    Route route;
    const char* method;
  };
  static constexpr Fixed kFixed[] = {
      {Route::kChat, "POST"},       {Route::kCompletions, "POST"}, {Route::kResponses, "POST"},
      {Route::kEmbeddings, "POST"}, {Route::kTokenize, "POST"},    {Route::kModels, "GET"},
      {Route::kHealth, "GET"},      {Route::kReady, "GET"},        {Route::kMetrics, "GET"},
  };
  for (const Fixed& fixed : kFixed) {
    if (path == route_name(fixed.route)) return {fixed.route, {}, fixed.method};
  }
  if (path.starts_with(kModelPrefix) && path.size() > kModelPrefix.size())
    return {Route::kModel, path.substr(kModelPrefix.size()), "GET"};
  return {};
}

bool Router::is_trusted(const HttpRequest& request) const noexcept {
  const auto& clients = around_.trusted_clients;
  return !request.client_identity.empty() &&
         std::find(clients.begin(), clients.end(), request.client_identity) != clients.end();
}

bool Router::wants_body(const HttpRequest& request) const noexcept {
  const Match found = match(request.path);
  return !draining_ && has_body(found.route) && request.method == found.method &&
         is_json(request.headers) && around_.keys.find(key_in(request.headers)) != nullptr &&
         around_.cors.may_call(request.headers);
}

Task<void> Router::answer(HttpRequest& request, Responder& responder, IoThread& io) {
  if (auto preflight = around_.cors.answer_preflight(request)) {
    static_cast<void>(co_await responder.respond(std::move(*preflight), ""));
    co_return;
  }
  const Match found = match(request.path);
  Exchange exchange(request, responder, around_.links_of(io), io.context(), around_.keys);
  exchange.trusted = (exchange.caller && exchange.caller->limits.trusted) || is_trusted(request);
  around_.cors.add_headers(request.headers, exchange.common);
  // However it ends: a client that goes ends it by an exception.
  struct Closing {
    Router& router;
    Exchange& exchange;
    Route route;
    ~Closing() { router.close_record(exchange, route); }
  } closing{*this, exchange, found.route};
  Running running(running_, around_.completion.metrics.running);
  if (running.now() > around_.completion.limits.max_running_requests) {
    around_.completion.metrics.refused.add();
    co_return co_await exchange.answer_error(too_busy(around_.completion.limits));
  }
  if (!around_.cors.may_call(request.headers)) {
    co_return co_await exchange.refuse(
        Code::kPermissionDenied,
        "no key is asked for here, so only pages of this machine may call; --cors-origin lets "
        "others in");
  }
  co_await admit(exchange, found);
}

Task<void> Router::admit(Exchange& exchange, const Match& found) {
  const HttpRequest& request = exchange.request;
  if (draining_ && !tells_of_the_process(found.route)) {
    co_return co_await exchange.refuse(Code::kUnavailable,
                                       "this gateway is being stopped and takes no new requests",
                                       "", kDrainingCode);
  }
  if (found.route == Route::kOther) {
    co_return co_await exchange.refuse(Code::kNotFound, "there is no such path here", "",
                                       "unknown_url");
  }
  const bool method_fits = request.method == found.method ||
                           (request.method == "HEAD" && std::string_view(found.method) == "GET");
  if (!method_fits) co_return co_await refuse_method(exchange, found.method);
  if (needs_key(found.route) && !exchange.caller) {
    co_return co_await exchange.refuse(Code::kUnauthenticated,
                                       "no valid key in the header Authorization: Bearer KEY");
  }
  if (has_body(found.route) && !is_json(request.headers))
    co_return co_await refuse_media_type(exchange);
  co_await dispatch(exchange, found);
}

Task<void> Router::dispatch(Exchange& exchange, const Match& found) {
  const GatewayLimits& limits = around_.completion.limits;
  const auto times = times_of(exchange.request, limits);
  if (!times) co_return co_await exchange.answer_error(times.error());
  const bool trusted = exchange.trusted;
  switch (found.route) {
    case Route::kChat:
      co_return co_await complete(exchange, parse_chat(exchange.request, limits, trusted), *times);
    case Route::kCompletions:
      co_return co_await complete(exchange, parse_completion(exchange.request, limits, trusted),
                                  *times);
    case Route::kResponses:
      co_return co_await complete(exchange, parse_responses(exchange.request, limits, trusted),
                                  *times);
    case Route::kEmbeddings:
      co_return co_await around_.endpoints.embeddings(exchange, *times);
    case Route::kTokenize:
      co_return co_await around_.endpoints.tokenize(exchange, *times);
    case Route::kModels:
      co_return co_await around_.endpoints.models(exchange);
    case Route::kModel:
      co_return co_await around_.endpoints.model(exchange, found.argument);
    case Route::kHealth:
      co_return co_await around_.endpoints.health(exchange);
    case Route::kReady:
      co_return co_await around_.endpoints.ready(exchange, draining_);
    case Route::kMetrics:
      co_return co_await around_.endpoints.metrics(exchange);
    case Route::kOther:
      co_return;
  }
}

Task<void> Router::complete(Exchange& exchange, ApiResult<OpenAiRequest> parsed,
                            RequestTimes times) {
  if (!parsed) co_return co_await exchange.answer_error(parsed.error());
  exchange.request.body = {};  // what is worth keeping of it is in `parsed`
  GatewayMetrics& metrics = around_.completion.metrics;
  if (parsed->shape.stream) metrics.streaming.add(1);
  struct Streaming {
    Gauge* gauge;
    ~Streaming() {
      if (gauge != nullptr) gauge->add(-1);
    }
  } streaming{parsed->shape.stream ? &metrics.streaming : nullptr};
  Completion completion(around_.completion, exchange, std::move(*parsed), times);
  co_await completion.run();
}

void Router::close_record(Exchange& exchange, Route route) noexcept try {
  AccessRecord& record = exchange.record;
  const int client_gone = to_http(Code::kCancelled);
  // Cut by us, in whatever it waited for.
  const bool cut = exchange.responder.expired() && record.status == 0;
  if (cut) record.failure = Code::kUnavailable;
  if (cut) record.status = exchange.responder.committed() ? 200 : to_http(Code::kUnavailable);
  if (record.status == 0) record.status = client_gone;
  if (record.status == client_gone) record.failure = Code::kCancelled;
  const Duration took = around_.completion.clock.now() - exchange.request.arrived_at;
  record.request_id = exchange.identity.request_id;
  if (exchange.caller) record.key = exchange.caller->name;
  constexpr std::size_t kLongestMethod = 32;  // clients make them up
  record.method = exchange.request.method.substr(0, kLongestMethod);
  record.route = route_name(route);
  record.duration = std::chrono::duration_cast<std::chrono::milliseconds>(took);
  around_.completion.metrics.count(route, record.status);
  around_.completion.metrics.unknown_fields.add(record.unknown_fields);
  around_.completion.metrics.duration_seconds.observe(std::chrono::duration<double>(took).count());
  around_.access_log.write(record);
} catch (...) {
  // Out of memory: a line of the log is lost.
}

}  // namespace sluice
