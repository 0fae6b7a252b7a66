#include "gateway/openai_error.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include "contract/wire.h"
#include "gateway/json_text.h"
#include "gateway/utf8_holdback.h"

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kUnavailableRetry{1000};

// How a replica's messages name a request's fields (contract/validate, contract/wire).
constexpr std::array<std::string_view, 21> kFields = {
    "temperature",  "top_p",  "top_k",      "min_p",      "frequency_penalty",  "presence_penalty",
    "max_tokens",   "prompt", "min_tokens", "logit_bias", "repetition_penalty", "n",
    "top_logprobs", "stop",   "priority",   "session_id", "messages",           "inputs",
    "model",        "cache",  "echo"};

bool is_field(std::string_view word) noexcept {
  const std::string_view name = word.substr(0, word.find_first_of("[."));
  return std::find(kFields.begin(), kFields.end(), name) != kFields.end();
}

// The first field that `message` names; "" if none.
std::string_view named_field(std::string_view message) noexcept {
  while (!message.empty()) {
    const std::size_t end = std::min(message.find_first_of(" :,;"), message.size());
    const std::string_view word = message.substr(0, end);
    if (is_field(word)) return word;
    message.remove_prefix(std::min(end + 1, message.size()));
  }
  return {};
}

bool is_about_the_context(std::string_view message) noexcept {
  return message.rfind("the prompt has ", 0) == 0 &&
         message.find("maximum context length") != std::string_view::npos;
}

std::string_view type_of(Code code) noexcept {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kNotFound:
      return "invalid_request_error";
    case Code::kUnauthenticated:
      return "authentication_error";
    case Code::kPermissionDenied:
      return "permission_error";
    case Code::kResourceExhausted:
      return "rate_limit_error";
    case Code::kDeadlineExceeded:
      return "timeout_error";
    case Code::kCancelled:
    case Code::kUnimplemented:
    case Code::kInternal:
    case Code::kUnavailable:
      return "server_error";
  }
  return "server_error";
}

// "": null.
std::string_view usual_code(Code code) noexcept {
  switch (code) {
    case Code::kNotFound:
      return "model_not_found";
    case Code::kUnauthenticated:
      return "invalid_api_key";
    case Code::kResourceExhausted:
      return "rate_limit_exceeded";
    case Code::kDeadlineExceeded:
      return "timeout";
    case Code::kUnimplemented:
      return "unsupported_parameter";
    case Code::kUnavailable:
      return "no_replica_available";
    case Code::kInternal:
      return "internal_error";
    case Code::kInvalidArgument:
    case Code::kPermissionDenied:
    case Code::kCancelled:
      return "";
  }
  return "";
}

void append_string_or_null(std::string& out, std::string_view text) {
  if (text.empty()) {
    out += "null";
  } else {
    append_json_string(out, to_valid_utf8(text));
  }
}

void add_retry_headers(const ApiError& error, HttpHeaders& headers) {
  auto wait = error.error.retry_after;
  if (!wait && error.error.code == Code::kUnavailable) wait = kUnavailableRetry;
  if (wait) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*wait);
    headers.add("Retry-After", std::to_string(std::max<std::int64_t>(seconds.count(), 1)));
    headers.add("retry-after-ms", std::to_string(std::max<std::int64_t>(wait->count(), 1)));
  }
  // Clients retry every status from 500 up, and asking for what isn't served again changes nothing.
  if (error.work_spent || error.error.code == Code::kUnimplemented) {
    headers.add("x-should-retry", "false");
  }
}

}  // namespace

ApiError to_api_error(Error error) {
  ApiError api;
  if (error.code == Code::kInvalidArgument || error.code == Code::kUnimplemented) {
    api.param = named_field(error.message);
    if (is_about_the_context(error.message)) api.code = "context_length_exceeded";
  } else if (error.code == Code::kNotFound) {
    api.param = "model";
  } else if (error.code == Code::kResourceExhausted &&
             error.message.rfind("the queue is full", 0) == 0) {
    api.code = "queue_full";
  } else if (error.code == Code::kUnavailable &&
             error.message.rfind("the server is shutting down", 0) == 0) {
    api.code = "draining";
  }
  // What no waiting helps against is not to be tried again: more tokens than a key has in a whole
  // minute.
  api.work_spent = error.code == Code::kResourceExhausted && !error.retry_after;
  api.error = std::move(error);
  return api;
}

std::string to_json(const ApiError& error) {
  const std::string_view code =
      error.code.empty() ? usual_code(error.error.code) : std::string_view(error.code);
  std::string out = R"({"error":{"message":)";
  append_json_string(out, to_valid_utf8(error.error.message));
  out += R"(,"type":)";
  append_json_string(out, type_of(error.error.code));
  out += R"(,"param":)";
  append_string_or_null(out, error.param);
  out += R"(,"code":)";
  append_string_or_null(out, code);
  out += "}}";
  return out;
}

ResponseHead head_of(const ApiError& error) {
  ResponseHead head;
  head.status = to_http(error.error.code);
  head.headers.add("content-type", "application/json");
  add_retry_headers(error, head.headers);
  if (error.error.code == Code::kUnauthenticated) head.headers.add("WWW-Authenticate", "Bearer");
  return head;
}

}  // namespace sluice
