// Directives: where a request may go, how soon, and what of it may be kept, as its client says it
// in the body or in headers, whoever's words it uses. A header that can't be understood is ignored
// and named in a warning; a field of the body is refused. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/generation.h"
#include "gateway/http_message.h"
#include "gateway/openai_fields.h"
#include "gateway/routing.h"

namespace sluice {

struct Directives {
  Routing routing;
  std::int32_t priority = 0;  // higher is sooner, -100 to 100
  std::string service_tier;   // OpenAI's name for it, where the client said anything about it
  std::string session_id;     // the body's own
  std::vector<std::string> warnings;
};

// `trusted`: whether headers that name one machine count. Without a session of the client's own
// routing.affinity is "": see prompt_affinity.
[[nodiscard]] Directives read_directives(Fields& fields, const HttpHeaders& headers, bool trusted);

// For requests without a session: those that begin alike have the same key. Made from the system
// messages and the first user message, or from the raw prompt: of each no more than its first few
// kilobytes.
[[nodiscard]] std::string prompt_affinity(const PromptSource& prompt);

// With provider.require_parameters a field of the body that nothing here knows is a fault; without,
// how many there are.
std::uint32_t settle_unknown_fields(Fields& fields, const Routing& routing);

}  // namespace sluice
