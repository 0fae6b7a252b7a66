#include "gateway/chat_encoder.h"

#include "gateway/json_text.h"
#include "gateway/openai_tokens.h"

namespace sluice {
namespace {

void append_chat_logprobs(std::string& out, std::span<const TokenLogprob> logprobs) {
  out += R"(,"logprobs":{"content":[)";
  append_logprobs(out, logprobs);
  out += R"(],"refusal":null})";
}

}  // namespace

void ChatEncoder::begin_choice(std::uint32_t index, std::string& out) const {
  frame_.open(index, out);
  out += R"(,"delta":{"role":"assistant","content":""},"finish_reason":null)";
  frame_.close(out);
}

void ChatEncoder::text(std::uint32_t index, std::string_view text,
                       std::span<const TokenLogprob> logprobs, ChoiceAnswer& /*choice*/,
                       std::string& out) const {
  frame_.open(index, out);
  out += R"(,"delta":{"content":")";
  append_json_text(out, text);
  out += R"("})";
  if (!logprobs.empty()) append_chat_logprobs(out, logprobs);
  out += R"(,"finish_reason":null)";
  frame_.close(out);
}

void ChatEncoder::end_choice(std::uint32_t index, const ChoiceAnswer& choice,
                             std::string& out) const {
  frame_.open(index, out);
  out += R"(,"delta":{})";
  append_finish(out, choice.finish);
  frame_.close(out);
}

void ChatEncoder::whole_choice(ChoiceAnswer& choice, std::string& out) {
  out += R"(,"message":{"role":"assistant","content":")";
  append_json_text(out, choice.text);
  out += R"(","refusal":null})";
  if (!choice.logprobs.empty()) {
    append_chat_logprobs(out, choice.logprobs);
  } else {
    out += R"(,"logprobs":null)";
  }
  append_finish(out, choice.finish);
}

}  // namespace sluice
