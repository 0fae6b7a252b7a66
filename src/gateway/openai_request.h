// OpenAI's request bodies as generations: /v1/chat/completions, /v1/completions, /v1/responses,
// /v1/embeddings and /tokenize. null is the same as absent; an unknown top-level field is ignored
// and counted; a known one that would change the answer and isn't served is refused by its name.
// Bounded by --max-json-depth; what a value may be is contract/validate's business, at the replica.
// No text of a prompt stands in any error. Thread: any (values).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/generation.h"
#include "gateway/gateway_limits.h"
#include "gateway/http_message.h"
#include "gateway/openai_error.h"
#include "gateway/routing.h"

namespace sluice {

enum class Dialect { kChat, kCompletion, kResponses };

// Those parts of a request that shape the answer and not the generation.
struct AnswerShape {
  Dialect dialect = Dialect::kChat;
  bool stream = false;
  bool include_usage = false;
  std::vector<std::string> echo;  // completions, if asked for: each generation's prompt
  std::string settings;           // responses: the request's own fields, as JSON members
  std::string service_tier;       // the class in use, by OpenAI's name; "": not asked for
  std::string model;              // asked for; the answer names the one that the replica says
};

struct OpenAiRequest {
  // One, or one for each prompt of a completion. Choices are numbered through all of them.
  std::vector<GenerationRequest> generations;
  AnswerShape shape;
  Routing routing;
  std::vector<std::string> warnings;  // for x-gateway-warnings
  std::uint32_t unknown_fields = 0;
};

struct OpenAiEmbedding {
  std::vector<std::string> inputs;
  bool base64 = false;
  std::uint32_t dimensions = 0;  // 0: all
  Routing routing;
  std::uint32_t unknown_fields = 0;
};

struct OpenAiTokenize {
  PromptSource prompt;
  Routing routing;
  std::uint32_t unknown_fields = 0;
};

// `trusted`: whether this caller's directives that name machines count (else they are not looked
// at).
[[nodiscard]] ApiResult<OpenAiRequest> parse_chat(const HttpRequest& request,
                                                  const GatewayLimits& limits, bool trusted);
[[nodiscard]] ApiResult<OpenAiRequest> parse_completion(const HttpRequest& request,
                                                        const GatewayLimits& limits, bool trusted);
[[nodiscard]] ApiResult<OpenAiRequest> parse_responses(const HttpRequest& request,
                                                       const GatewayLimits& limits, bool trusted);
[[nodiscard]] ApiResult<OpenAiEmbedding> parse_embedding(const HttpRequest& request,
                                                         const GatewayLimits& limits, bool trusted);
[[nodiscard]] ApiResult<OpenAiTokenize> parse_tokenize(const HttpRequest& request,
                                                       const GatewayLimits& limits, bool trusted);

}  // namespace sluice
