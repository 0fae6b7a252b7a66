#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/concat.h"
#include "gateway/json_text.h"
#include "gateway/openai_assembly.h"
#include "gateway/openai_messages.h"
#include "gateway/openai_options.h"
#include "gateway/openai_request.h"

namespace sluice {
namespace {

// Each item that is no message (a call, its result, a reference to a stored item) would have
// changed the prompt.
void refuse_other_items(Fields& fields) {
  for (Fields& item : fields.objects("input")) {
    const std::string_view type = item.text("type");
    if (!type.empty() && type != "message") {
      item.fail_unsupported("type", "other than \"message\" is not served");
    }
  }
}

std::vector<Message> read_input(Fields& fields, CacheMarks& marks) {
  if (fields.kind("input") == FieldKind::kString) {
    Message message;
    message.parts.emplace_back();
    fields.read("input", message.parts.back().bytes);
    return {std::move(message)};
  }
  refuse_other_items(fields);
  return read_messages(fields, "input", marks);
}

PromptSource read_prompt(Fields& fields, CacheMarks& marks) {
  PromptSource prompt;
  if (Message system{Role::kSystem, {Part{}}};
      fields.read("instructions", system.parts.back().bytes)) {
    prompt.messages.push_back(std::move(system));
  }
  std::vector<Message> input = read_input(fields, marks);
  std::move(input.begin(), input.end(), std::back_inserter(prompt.messages));
  return prompt;
}

void read_logprobs(Fields& fields, Sampling& sampling) {
  std::vector<std::string> include;
  fields.read("include", include);
  const bool wanted =
      std::find(include.begin(), include.end(), "message.output_text.logprobs") != include.end();
  std::int32_t top = 0;
  fields.read("top_logprobs", top);
  if (wanted) sampling.top_logprobs = top;
}

// What needs a state that this server does not keep, or does what it can't.
void refuse_unserved(Fields& fields) {
  for (const std::string_view name : {"previous_response_id", "conversation", "prompt"}) {
    if (fields.has(name)) fields.fail_unsupported(name);
  }
  bool background = false;
  fields.read("background", background);
  if (background) fields.fail_unsupported("background");
  const std::string_view truncation = fields.text("truncation");
  if (truncation == "auto") {
    fields.fail_unsupported("truncation", "\"auto\" is not served; a prompt is never cut");
  } else if (!truncation.empty() && truncation != "disabled") {
    fields.fail("truncation", "must be \"disabled\"");
  }
  if (auto text = fields.object("text")) {
    refuse_format(*text, "format");
    refuse_other_than(*text, "verbosity", "medium");
  }
  if (auto reasoning = fields.object("reasoning")) refuse_other_than(*reasoning, "effort", "none");
  refuse_tools(fields);
}

// OpenAI's bounds. A response repeats it, and a streamed one three times.
void check_metadata(Fields& fields) {
  constexpr std::size_t kMostEntries = 16;
  constexpr std::size_t kMostNameBytes = 64;
  constexpr std::size_t kMostTextBytes = 512;
  auto metadata = fields.object("metadata");
  if (!metadata) return;
  const std::vector<std::string_view> names = metadata->unasked();
  if (names.size() > kMostEntries)
    return fields.fail("metadata", concat("must have at most ", kMostEntries, " entries"));
  for (const std::string_view name : names) {
    const bool fits =
        name.size() <= kMostNameBytes && metadata->text(name).size() <= kMostTextBytes;
    if (!fits)
      return fields.fail("metadata", concat("must have names of at most ", kMostNameBytes,
                                            " bytes and texts of at most ", kMostTextBytes));
  }
}

void append_member(std::string& out, std::string_view name, std::string_view json) {
  out += out.empty() ? "\"" : ",\"";
  out += name;
  out += "\":";
  out += json.empty() ? "null" : json;
}

std::string number(float value) {
  std::string text;
  append_json_number(text, value);
  return text;
}

// What the Response object repeats of its request.
std::string settings_of(Fields& fields, const GenerationRequest& generation) {
  std::string out;
  append_member(out, "instructions", fields.json("instructions"));
  append_member(out, "max_output_tokens", fields.json("max_output_tokens"));
  const std::string metadata = fields.json("metadata");
  append_member(out, "metadata", metadata.empty() ? "{}" : metadata);
  append_member(out, "parallel_tool_calls", "true");
  append_member(out, "previous_response_id", "");
  append_member(out, "store", "false");
  append_member(out, "temperature", number(generation.sampling.temperature));
  append_member(out, "text", R"({"format":{"type":"text"}})");
  append_member(out, "tool_choice",
                fields.text("tool_choice") == "none" ? R"("none")" : R"("auto")");
  append_member(out, "tools", "[]");
  append_member(out, "top_p", number(generation.sampling.top_p));
  append_member(out, "truncation", R"("disabled")");
  return out;
}

OpenAiRequest read_responses(Fields& fields, const HttpRequest& request, bool trusted) {
  AnswerShape shape;
  shape.dialect = Dialect::kResponses;
  read_streaming(fields, shape);
  GenerationRequest generation;
  CacheMarks marks;
  generation.prompt = read_prompt(fields, marks);
  if (read_cache_mark(fields, marks)) mark_end(generation.prompt.messages);
  read_sampling(fields, generation.sampling);
  read_logprobs(fields, generation.sampling);
  read_stopping(fields, generation.stopping);
  read_token_bound(fields, "max_output_tokens", generation.stopping);
  refuse_unserved(fields);
  check_metadata(fields);
  shape.settings = settings_of(fields, generation);
  std::vector<GenerationRequest> generations;
  generations.push_back(std::move(generation));
  return assemble(fields, request, trusted, std::move(shape), marks, std::move(generations));
}

}  // namespace

ApiResult<OpenAiRequest> parse_responses(const HttpRequest& request, const GatewayLimits& limits,
                                         bool trusted) {
  return read_body(request, limits,
                   [&](Fields& fields) { return read_responses(fields, request, trusted); });
}

}  // namespace sluice
