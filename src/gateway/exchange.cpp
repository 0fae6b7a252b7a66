#include "gateway/exchange.h"

#include <span>

#include "access/hex.h"
#include "base/concat.h"
#include "contract/wire.h"
#include "gateway/routing_text.h"

namespace sluice {
namespace {

// Subjects may be longer than a key's name, and no name has this sign.
std::string tenant_of(const ApiKey* caller, std::string_view certificate) {
  if (caller != nullptr && !caller->name.empty()) return caller->name;
  if (certificate.empty()) return {};
  constexpr std::size_t kBytes = 16;  // twice as many digits: within a key name's bound
  const Sha256 hash = sha256(certificate);
  return concat("=", to_hex(std::span(hash).first(kBytes)));
}

}  // namespace

std::string_view key_in(const HttpHeaders& headers) noexcept {
  constexpr std::string_view kField = "authorization";
  return headers.count(kField) == 1 ? bearer_in(headers.value(kField)) : std::string_view();
}

Exchange::Exchange(HttpRequest& asked, Responder& way_back, ReplicaLinks& ways,
                   asio::io_context& thread, const KeyRing& keys)
    : request(asked),
      responder(way_back),
      links(ways),
      io(thread),
      identity(identify(asked.headers)),
      caller(keys.find(key_in(asked.headers))),
      tenant(tenant_of(caller.get(), asked.client_identity)) {
  record.bytes_in = asked.body.size();
  common.add("x-request-id", identity.request_id);
}

Task<void> Exchange::answer(ResponseHead head, std::string body) {
  record.status = head.status;
  record.bytes_out += body.size();
  const bool sent = co_await responder.respond(std::move(head), std::move(body));
  if (!sent) record.status = to_http(Code::kCancelled);
}

Task<void> Exchange::answer_json(std::string&& body) {
  return answer(head(200, "application/json"), std::move(body));
}

Task<void> Exchange::answer_error(const ApiError& error) {
  record.failure = error.error.code;
  ResponseHead made = head_of(error);
  for (const auto& [name, value] : common.fields()) made.headers.add(name, value);
  return answer(std::move(made), to_json(error));
}

Task<void> Exchange::answer_error(const Error& error) { return answer_error(to_api_error(error)); }

Task<void> Exchange::refuse(Code code, const char* message, const char* param,
                            const char* api_code) {
  return answer_error(api_error(code, message, param, api_code));
}

Task<void> Exchange::refuse_model() {
  return refuse(Code::kPermissionDenied, "this key may not use that model", "model");
}

Result<RateLimits::Reservation> Exchange::reserve(RateLimits& rates, std::uint64_t tokens,
                                                  std::uint32_t choices) {
  auto reserved = rates.reserve(*caller, tokens, choices);
  add_headers(rates.figures(*caller), common);
  return reserved;
}

void Exchange::note(const ReplicaPool::Choice& choice, std::uint32_t attempt) {
  record.attempts = attempt;
  record.replica = choice.name;
  record.routing_reason = routing_reason_text(choice.reason);
}

}  // namespace sluice
