#include "gateway/openai_options.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/concat.h"

namespace sluice {

void read_token_bound(Fields& fields, std::string_view name, Stopping& stopping) {
  std::int32_t most = 0;
  if (!fields.read(name, most)) return;
  if (most < 1) fields.fail(name, concat("must be at least 1; it is ", most));
  stopping.max_tokens = most;
}

void read_sampling(Fields& fields, Sampling& sampling) {
  fields.read("temperature", sampling.temperature);
  fields.read("top_p", sampling.top_p);
  fields.read("top_k", sampling.top_k);
  fields.read("min_p", sampling.min_p);
  fields.read("frequency_penalty", sampling.frequency_penalty);
  fields.read("presence_penalty", sampling.presence_penalty);
  fields.read("repetition_penalty", sampling.repetition_penalty);
  fields.read("seed", sampling.seed);
  fields.read("logit_bias", sampling.logit_bias);
}

void read_stopping(Fields& fields, Stopping& stopping) {
  fields.read_one_or_more("stop", stopping.stop);
  fields.read("min_tokens", stopping.min_tokens);
  fields.read("ignore_eos", stopping.ignore_eos);
}

void read_streaming(Fields& fields, AnswerShape& shape) {
  fields.read("stream", shape.stream);
  if (auto options = fields.object("stream_options")) {
    options->read("include_usage", shape.include_usage);
    bool padded = false;  // it would hide how long deltas are, which changes no answer
    options->read("include_obfuscation", padded);
  }
}

std::int32_t read_n(Fields& fields, std::size_t prompts, const GatewayLimits& limits) {
  std::int32_t n = 1;
  fields.read("n", n);
  if (n < 1) {
    fields.fail("n", "must be at least 1");
    return 1;
  }
  if (static_cast<std::size_t>(n) > limits.max_choices / std::max<std::size_t>(prompts, 1)) {
    fields.fail(prompts > 1 ? "prompt" : "n",
                concat("asks for more than ", limits.max_choices, " choices (--max-choices)"));
    return 1;
  }
  return n;
}

void refuse_other_than(Fields& fields, std::string_view name, std::string_view served) {
  const std::string_view given = fields.text(name);
  if (given.empty() || given == served) return;
  fields.fail_unsupported(name, concat("other than \"", served, "\" is not served"));
}

void refuse_tools(Fields& fields) {
  const bool named = fields.kind("tool_choice") == FieldKind::kObject;
  const std::string_view choice = named ? "function" : fields.text("tool_choice");
  if (!choice.empty() && choice != "none" && choice != "auto") {
    fields.fail_unsupported("tool_choice", "other than \"none\" and \"auto\" is not served");
  }
  if (fields.has_entries("tools") && choice != "none") {
    fields.fail_unsupported("tools", "are not served; tool_choice \"none\" lets them be ignored");
  }
  fields.accept({"parallel_tool_calls"});
}

void refuse_format(Fields& fields, std::string_view name) {
  auto format = fields.object(name);
  if (!format) return;
  const std::string_view type = format->text("type");
  if (type == "text") return;
  if (type == "json_object" || type == "json_schema" || type == "grammar") {
    fields.fail_unsupported(name, "other than \"text\" is not served");
  } else {
    format->fail("type", "must be text, json_object or json_schema");
  }
}

void refuse_constraints(Fields& fields) {
  refuse_format(fields, "response_format");
  for (const std::string_view name : {"grammar", "json_schema", "structured_outputs", "guided_json",
                                      "guided_regex", "guided_choice", "guided_grammar"}) {
    if (fields.has(name)) fields.fail_unsupported(name);
  }
}

}  // namespace sluice
