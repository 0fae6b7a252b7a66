#include "gateway/cors.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <string_view>
#include <utility>

#include "base/listen_address.h"

namespace sluice {
namespace {

// A browser reads no other header of an answer than these and the harmless ones.
constexpr const char* kExposed =
    "x-request-id, retry-after, retry-after-ms, x-ratelimit-limit-requests, "
    "x-ratelimit-limit-tokens, x-ratelimit-remaining-requests, x-ratelimit-remaining-tokens, "
    "x-ratelimit-reset-requests, x-ratelimit-reset-tokens, x-should-retry, x-served-by, "
    "x-served-model, x-attempts, x-fallback-reason, x-routing-reason, x-queue-ms, "
    "x-gateway-overhead-us, x-gateway-warnings, openai-processing-ms, grpc-status, grpc-message";

// The headers that the page wants to send, all of them allowed, and Authorization in any case: "*"
// would not cover it. What is no list of names is left out.
std::string allowed_headers(std::string_view wanted) {
  std::string allowed = "authorization";
  for (const auto name : boost::beast::http::token_list{wanted}) {
    if (!boost::beast::iequals(name, "authorization"))
      (allowed += ", ").append(name.data(), name.size());
  }
  return allowed;
}

// The pages of a server on a loopback address.
bool is_of_this_machine(std::string_view origin) {
  const std::size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos) return false;
  const std::string authority(origin.substr(scheme + 3));
  auto address = parse_host_port(authority);
  if (!address) address = parse_host_port(authority + ":0");
  return address && is_loopback(address->host);
}

}  // namespace

Cors::Cors(std::vector<std::string> origins, bool keys_required)
    : origins_(std::move(origins)),
      keys_required_(keys_required),
      any_(origins_.empty() ? keys_required
                            : std::find(origins_.begin(), origins_.end(), "*") != origins_.end()) {}

bool Cors::allows(std::string_view origin) const {
  return any_ || (origins_.empty() && is_of_this_machine(origin)) ||
         std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
}

bool Cors::may_call(const HttpHeaders& request) const {
  const std::string* origin = request.find("origin");
  return keys_required_ || origin == nullptr || allows(*origin);
}

std::optional<ResponseHead> Cors::answer_preflight(const HttpRequest& request) const {
  if (request.method != "OPTIONS" || request.headers.find("origin") == nullptr ||
      request.headers.find("access-control-request-method") == nullptr) {
    return std::nullopt;
  }
  ResponseHead head{.status = 204, .headers = {}};
  add_origin(request.headers, head.headers);
  head.headers.add("access-control-allow-methods", "GET, POST, OPTIONS");
  head.headers.add("access-control-allow-headers",
                   allowed_headers(request.headers.value("access-control-request-headers")));
  head.headers.add("access-control-max-age", "86400");
  return head;
}

void Cors::add_headers(const HttpHeaders& request, HttpHeaders& response) const {
  if (request.find("origin") == nullptr) return;
  add_origin(request, response);
  response.add("access-control-expose-headers", kExposed);
}

// Where the answer depends on the origin, caches are told so.
void Cors::add_origin(const HttpHeaders& request, HttpHeaders& response) const {
  if (any_) {
    response.add("access-control-allow-origin", "*");
    return;
  }
  response.add("vary", "Origin");
  const std::string_view origin = request.value("origin");
  if (allows(origin)) response.add("access-control-allow-origin", std::string(origin));
}

}  // namespace sluice
