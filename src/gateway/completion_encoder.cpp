#include "gateway/completion_encoder.h"

#include "gateway/json_text.h"
#include "gateway/openai_tokens.h"

namespace sluice {
namespace {

void append_text_member(std::string& out, std::string_view text,
                        std::span<const TokenLogprob> logprobs, std::uint64_t& characters) {
  out += R"(,"text":")";
  append_json_text(out, text);
  out += R"(","logprobs":)";
  if (logprobs.empty()) {
    out += "null";
  } else {
    append_completion_logprobs(out, logprobs, characters);
  }
}

}  // namespace

void CompletionEncoder::text(std::uint32_t index, std::string_view text,
                             std::span<const TokenLogprob> logprobs, ChoiceAnswer& choice,
                             std::string& out) const {
  frame_.open(index, out);
  append_text_member(out, text, logprobs, choice.characters);
  out += R"(,"finish_reason":null)";
  frame_.close(out);
}

void CompletionEncoder::end_choice(std::uint32_t index, const ChoiceAnswer& choice,
                                   std::string& out) const {
  frame_.open(index, out);
  out += R"(,"text":"","logprobs":null)";
  append_finish(out, choice.finish);
  frame_.close(out);
}

void CompletionEncoder::whole_choice(ChoiceAnswer& choice, std::string& out) {
  append_text_member(out, choice.text, choice.logprobs, choice.characters);
  append_finish(out, choice.finish);
}

}  // namespace sluice
