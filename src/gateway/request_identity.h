// RequestIdentity: what one request is known by everywhere: its id (x-request-id; the caller's if
// it is harmless, else a new one) and its place in a trace (W3C Trace Context: the caller's trace
// goes on with this gateway as the parent; without a valid one a new trace begins, not sampled).
// Thread: any (values).
#pragma once

#include <string>

#include "gateway/http_message.h"

namespace sluice {

struct RequestIdentity {
  std::string request_id;
  std::string traceparent;  // for the replica
};

[[nodiscard]] RequestIdentity identify(const HttpHeaders& headers);

}  // namespace sluice
