// Exchange: one request while it is answered: what an endpoint needs to know of it, the headers
// that every answer to it has, and what the access log will say. Lives as long as the handler's
// task. Thread: its I/O thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "access/keys.h"
#include "base/clock.h"
#include "gateway/access_log.h"
#include "gateway/http_message.h"
#include "gateway/openai_error.h"
#include "gateway/rate_limits.h"
#include "gateway/replica_links.h"
#include "gateway/replica_pool.h"
#include "gateway/request_identity.h"
#include "gateway/responder.h"

namespace sluice {

// The key that a request shows. Two of them are none: whoever stands in front may have looked at
// the other.
[[nodiscard]] std::string_view key_in(const HttpHeaders& headers) noexcept;

struct Exchange {
  Exchange(HttpRequest& asked, Responder& way_back, ReplicaLinks& ways, asio::io_context& thread,
           const KeyRing& keys);

  HttpRequest& request;
  Responder& responder;
  ReplicaLinks& links;
  asio::io_context& io;
  RequestIdentity identity;
  std::shared_ptr<const ApiKey> caller;
  std::string tenant;    // who shares a cache with nobody else: a key, or else a certificate
  bool trusted = false;  // whether the caller may name machines
  HttpHeaders common;    // on every answer
  AccessRecord record;

  // The head of an answer, with the common headers.
  [[nodiscard]] ResponseHead head(int status, std::string content_type) const {
    ResponseHead made{status, common};
    made.headers.add("content-type", std::move(content_type));
    return made;
  }

  // Answers, and notes what the access log will say of it. What is given to the last three may go
  // once they have returned: they are no coroutines, for g++ 12 destroys twice what an awaiting
  // expression makes for a coroutine's parameters.
  [[nodiscard]] Task<void> answer(ResponseHead head, std::string body);
  [[nodiscard]] Task<void> answer_json(std::string&& body);
  [[nodiscard]] Task<void> answer_error(const ApiError& error);
  [[nodiscard]] Task<void> answer_error(const Error& error);
  [[nodiscard]] Task<void> refuse(Code code, const char* message, const char* param = "",
                                  const char* api_code = "");
  [[nodiscard]] Task<void> refuse_model();

  // What the caller's key may still use, with the figures for every answer.
  [[nodiscard]] Result<RateLimits::Reservation> reserve(RateLimits& rates, std::uint64_t tokens,
                                                        std::uint32_t choices = 1);
  // Which replica is asked, and at which attempt.
  void note(const ReplicaPool::Choice& choice, std::uint32_t attempt);
  [[nodiscard]] CallContext call_context(TimePoint deadline) const {
    return {deadline, identity.request_id, identity.traceparent};
  }
};

}  // namespace sluice
