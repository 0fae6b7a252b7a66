// RequestTimes: how long a request may take, as its headers say it in seconds: x-request-timeout
// and x-litellm-timeout for all of it, x-litellm-stream-timeout and the SLO headers (in ms) for its
// first token. Without any: --request-timeout-ms. Thread: any (values).
#pragma once

#include <chrono>

#include "base/clock.h"
#include "base/error.h"
#include "gateway/gateway_limits.h"
#include "gateway/http_message.h"

namespace sluice {

struct RequestTimes {
  TimePoint deadline = kForever;
  TimePoint first_token_by = kForever;  // else another replica is tried
};

// Errors: kInvalidArgument, naming the header.
[[nodiscard]] Result<RequestTimes> times_of(const HttpRequest& request,
                                            const GatewayLimits& limits);

}  // namespace sluice
