#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/openai_assembly.h"
#include "gateway/openai_messages.h"
#include "gateway/openai_options.h"
#include "gateway/openai_request.h"

namespace sluice {
namespace {

void read_max_tokens(Fields& fields, Stopping& stopping) {
  read_token_bound(fields, "max_tokens", stopping);
  read_token_bound(fields, "max_completion_tokens", stopping);
}

void read_logprobs(Fields& fields, Sampling& sampling) {
  bool wanted = false;
  std::int32_t top = 0;
  fields.read("logprobs", wanted);
  fields.read("top_logprobs", top);
  if (wanted) sampling.top_logprobs = top;
  if (!wanted && top != 0) fields.fail("top_logprobs", "needs logprobs to be true");
}

void refuse_modalities(Fields& fields) {
  std::vector<std::string> modalities;
  fields.read("modalities", modalities);
  const bool text_alone = std::all_of(modalities.begin(), modalities.end(),
                                      [](const std::string& one) { return one == "text"; });
  if (!text_alone) fields.fail_unsupported("modalities", "other than \"text\" are not served");
  if (text_alone) fields.accept({"audio"});
}

// The names that tools had before they were tools.
void refuse_functions(Fields& fields) {
  const bool named = fields.kind("function_call") == FieldKind::kObject;
  const std::string_view call = named ? "function" : fields.text("function_call");
  if (!call.empty() && call != "none" && call != "auto") fields.fail_unsupported("function_call");
  if (fields.has_entries("functions") && call != "none") {
    fields.fail_unsupported("functions", "are not served");
  }
}

OpenAiRequest read_chat(Fields& fields, const HttpRequest& request, const GatewayLimits& limits,
                        bool trusted) {
  AnswerShape shape;
  shape.dialect = Dialect::kChat;
  read_streaming(fields, shape);
  GenerationRequest generation;
  CacheMarks marks;
  generation.prompt.messages = read_messages(fields, "messages", marks);
  if (read_cache_mark(fields, marks)) mark_end(generation.prompt.messages);
  read_sampling(fields, generation.sampling);
  read_logprobs(fields, generation.sampling);
  read_stopping(fields, generation.stopping);
  read_max_tokens(fields, generation.stopping);
  generation.n = read_n(fields, 1, limits);
  refuse_tools(fields);
  refuse_functions(fields);
  refuse_modalities(fields);
  refuse_constraints(fields);
  refuse_other_than(fields, "reasoning_effort", "none");
  refuse_other_than(fields, "verbosity", "medium");
  for (const std::string_view name :
       {"prediction", "web_search_options", "chat_template", "chat_template_kwargs"}) {
    if (fields.has(name)) fields.fail_unsupported(name);
  }
  std::vector<GenerationRequest> generations;
  generations.push_back(std::move(generation));
  return assemble(fields, request, trusted, std::move(shape), marks, std::move(generations));
}

}  // namespace

ApiResult<OpenAiRequest> parse_chat(const HttpRequest& request, const GatewayLimits& limits,
                                    bool trusted) {
  return read_body(request, limits,
                   [&](Fields& fields) { return read_chat(fields, request, limits, trusted); });
}

}  // namespace sluice
