#include <string>
#include <string_view>
#include <utility>

#include "gateway/openai_assembly.h"
#include "gateway/openai_messages.h"
#include "gateway/openai_request.h"

namespace sluice {
namespace {

// vLLM's names, and llama.cpp's "content".
PromptSource read_prompt(Fields& fields) {
  PromptSource prompt;
  CacheMarks marks;
  if (fields.has("messages")) {
    prompt.messages = read_messages(fields, "messages", marks);
  } else if (!fields.read("prompt", prompt.raw) && !fields.read("content", prompt.raw)) {
    fields.fail_missing("prompt");
  }
  return prompt;
}

OpenAiEmbedding read_embedding(Fields& fields, const HttpRequest& request, bool trusted) {
  OpenAiEmbedding embedding;
  if (fields.kind("input") == FieldKind::kTokens) {
    fields.fail_unsupported("input", "of token ids is not served; send text");
  } else if (!fields.read_one_or_more("input", embedding.inputs)) {
    fields.fail_missing("input");
  } else if (embedding.inputs.empty()) {
    fields.fail("input", "must not be empty");
  }
  const std::string_view format = fields.text("encoding_format");
  embedding.base64 = format == "base64";
  if (!format.empty() && format != "float" && format != "base64") {
    fields.fail("encoding_format", "must be \"float\" or \"base64\"");
  }
  std::int32_t dimensions = 1;
  if (fields.read("dimensions", dimensions)) {
    embedding.dimensions = static_cast<std::uint32_t>(dimensions);
  }
  if (dimensions < 1) fields.fail("dimensions", "must be at least 1");
  embedding.routing = read_directives(fields, request.headers, trusted).routing;
  embedding.unknown_fields = settle_unknown_fields(fields, embedding.routing);
  return embedding;
}

}  // namespace

ApiResult<OpenAiEmbedding> parse_embedding(const HttpRequest& request, const GatewayLimits& limits,
                                           bool trusted) {
  return read_body(request, limits,
                   [&](Fields& fields) { return read_embedding(fields, request, trusted); });
}

ApiResult<OpenAiTokenize> parse_tokenize(const HttpRequest& request, const GatewayLimits& limits,
                                         bool trusted) {
  return read_body(request, limits, [&](Fields& fields) {
    OpenAiTokenize tokenize;
    tokenize.prompt = read_prompt(fields);
    tokenize.routing = read_directives(fields, request.headers, trusted).routing;
    tokenize.unknown_fields = settle_unknown_fields(fields, tokenize.routing);
    return tokenize;
  });
}

}  // namespace sluice
