#include "gateway/exchange.h"

#include "contract/wire.h"

namespace sluice {

Task<void> Exchange::answer(ResponseHead head, std::string body) {
  record.status = head.status;
  record.bytes_out += body.size();
  const bool sent = co_await responder.respond(std::move(head), std::move(body));
  if (!sent) record.status = to_http(Code::kCancelled);
}

Task<void> Exchange::answer_json(std::string body) {
  co_await answer(head(200, "application/json"), std::move(body));
}

Task<void> Exchange::answer_error(ApiError error) {
  record.failure = error.error.code;
  ResponseHead made = head_of(error);
  for (const auto& [name, value] : common.fields()) made.headers.add(name, value);
  co_await answer(std::move(made), to_json(error));
}

}  // namespace sluice
