// ApiError: an error as OpenAI's clients decode it: {"error":{"message","type","param","code"}},
// the HTTP status that goes with it, and the headers that steer their retries. Thread: any
// (values).
#pragma once

#include <string>
#include <utility>

#include "base/error.h"
#include "gateway/http_message.h"

namespace sluice {

struct ApiError {
  Error error;
  std::string param;        // "": null
  std::string code;         // "": the usual one of error.code
  bool work_spent = false;  // the client should not try again by itself
};

[[nodiscard]] inline ApiError api_error(Code code, std::string message, std::string param = "",
                                        std::string api_code = "") {
  return ApiError{Error{code, std::move(message)}, std::move(param), std::move(api_code)};
}

template <typename T>
using ApiResult = tl::expected<T, ApiError>;

[[nodiscard]] inline tl::unexpected<ApiError> refuse(Code code, std::string message,
                                                     std::string param = "",
                                                     std::string api_code = "") {
  return tl::unexpected(api_error(code, std::move(message), std::move(param), std::move(api_code)));
}

// What a replica or a bound says, in OpenAI's words: the code is found from the error (a prompt
// beyond the context is context_length_exceeded, an unknown model is model_not_found …), the param
// from the field it names.
[[nodiscard]] ApiError to_api_error(Error error);

// The body: one JSON object with the one key "error".
[[nodiscard]] std::string to_json(const ApiError& error);

// Status and headers: content-type, Retry-After and retry-after-ms, x-should-retry,
// WWW-Authenticate.
[[nodiscard]] ResponseHead head_of(const ApiError& error);

}  // namespace sluice
