// What the tests of OpenAI's dialects share: requests out of a body, and the refusal that a body
// gets. Thread: any.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/gateway_limits.h"
#include "gateway/http_message.h"
#include "gateway/openai_request.h"

namespace sluice::test {

using TestHeaders = std::vector<std::pair<std::string, std::string>>;

inline HttpRequest request_of(std::string body, const TestHeaders& headers = {}) {
  HttpRequest request;
  request.method = "POST";
  request.body = std::move(body);
  for (const auto& [name, value] : headers) request.headers.add(name, value);
  return request;
}

// A chat body with one short message and these members besides.
inline std::string chat_with(std::string_view members) {
  std::string body = R"({"model":"m","messages":[{"role":"user","content":"hi"}])";
  if (!members.empty()) body += ",";
  body += members;
  return body + "}";
}

inline ApiResult<OpenAiRequest> chat(std::string body, const TestHeaders& headers = {},
                                     bool trusted = false) {
  return parse_chat(request_of(std::move(body), headers), GatewayLimits{}, trusted);
}

// "param code", or "served".
template <typename T>
std::string refusal(const ApiResult<T>& result) {
  if (result) return "served";
  return result.error().param + " " + result.error().code;
}

}  // namespace sluice::test
