// What all of OpenAI's bodies have in common around their prompts: the body is parsed, read field
// by field, and what all generations of one request share is put into each. Thread: any.
#pragma once

#include <vector>

#include "contract/generation.h"
#include "gateway/cache_directives.h"
#include "gateway/directives.h"
#include "gateway/openai_body.h"
#include "gateway/openai_fields.h"
#include "gateway/openai_request.h"

namespace sluice {

// `read(Fields&)` returns what it read; the first fault found on the way wins over it.
template <typename Read>
auto read_body(const HttpRequest& request, const GatewayLimits& limits, Read read)
    -> ApiResult<decltype(read(std::declval<Fields&>()))> {
  auto body = JsonBody::parse(request.body, limits);
  if (!body) return tl::unexpected(std::move(body.error()));
  std::optional<ApiError> fault;
  Fields fields(body->root(), "", fault);
  auto result = read(fields);
  if (fault) return tl::unexpected(std::move(*fault));
  return result;
}

// `generations` hold what differs between them and what their dialect says; the rest is read here.
// The last to read: whatever was not asked for by then is unknown.
[[nodiscard]] OpenAiRequest assemble(Fields& fields, const HttpRequest& request, bool trusted,
                                     AnswerShape shape, const CacheMarks& marks,
                                     std::vector<GenerationRequest> generations);

}  // namespace sluice
