#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/concat.h"
#include "contract/validate.h"
#include "gateway/openai_assembly.h"
#include "gateway/openai_options.h"
#include "gateway/openai_request.h"

namespace sluice {
namespace {

constexpr std::int32_t kDefaultMaxTokens = 16;  // OpenAI's

// Absent: one empty prompt, which is the model's start token.
std::vector<std::string> read_prompts(Fields& fields) {
  std::vector<std::string> prompts;
  if (fields.kind("prompt") == FieldKind::kTokens) {
    fields.fail_unsupported("prompt", "of token ids is not served; send text");
  } else if (!fields.read_one_or_more("prompt", prompts)) {
    prompts.emplace_back();
  } else if (prompts.empty()) {
    fields.fail("prompt", "must not be an empty list");
  }
  return prompts;
}

// What a replica would call top_logprobs.
void read_logprobs(Fields& fields, Sampling& sampling) {
  std::int32_t top = 0;
  if (!fields.read("logprobs", top)) return;
  if (top < 0 || top > kMaxTopLogprobs)
    fields.fail("logprobs", concat("must be from 0 to ", kMaxTopLogprobs, "; it is ", top));
  sampling.top_logprobs = top;
}

void read_best_of(Fields& fields, std::int32_t n) {
  std::int32_t best_of = n;
  fields.read("best_of", best_of);
  if (best_of < n) fields.fail("best_of", "must not be below n");
  if (best_of > n) fields.fail_unsupported("best_of", "above n is not served");
}

OpenAiRequest read_completion(Fields& fields, const HttpRequest& request,
                              const GatewayLimits& limits, bool trusted) {
  AnswerShape shape;
  shape.dialect = Dialect::kCompletion;
  read_streaming(fields, shape);
  GenerationRequest each;
  read_sampling(fields, each.sampling);
  read_logprobs(fields, each.sampling);
  each.stopping.max_tokens = kDefaultMaxTokens;
  read_stopping(fields, each.stopping);
  read_token_bound(fields, "max_tokens", each.stopping);
  std::vector<std::string> prompts = read_prompts(fields);
  each.n = read_n(fields, prompts.size(), limits);
  read_best_of(fields, each.n);
  refuse_constraints(fields);
  if (!fields.text("suffix").empty()) fields.fail_unsupported("suffix");
  bool echo = false;
  fields.read("echo", echo);
  if (echo && each.sampling.top_logprobs) {
    fields.fail_unsupported("echo", "with logprobs is not served");
  }
  if (echo) shape.echo = prompts;

  CacheMarks marks;
  read_cache_mark(fields, marks);
  std::vector<GenerationRequest> generations;
  if (fields.failed()) prompts.clear();
  generations.reserve(prompts.size());
  for (std::string& prompt : prompts) {
    generations.push_back(each);
    generations.back().prompt.raw = std::move(prompt);
  }
  return assemble(fields, request, trusted, std::move(shape), marks, std::move(generations));
}

}  // namespace

ApiResult<OpenAiRequest> parse_completion(const HttpRequest& request, const GatewayLimits& limits,
                                          bool trusted) {
  return read_body(request, limits, [&](Fields& fields) {
    return read_completion(fields, request, limits, trusted);
  });
}

}  // namespace sluice
