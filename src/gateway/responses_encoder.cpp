#include "gateway/responses_encoder.h"

#include "base/concat.h"
#include "gateway/json_text.h"
#include "gateway/openai_tokens.h"
#include "gateway/utf8_holdback.h"

namespace sluice {
namespace {

constexpr std::string_view kNoDetails = R"("error":null,"incomplete_details":null)";
constexpr std::string_view kCutShort =
    R"("error":null,"incomplete_details":{"reason":"max_output_tokens"})";

bool is_cut_short(const ChoiceAnswer& choice) noexcept {
  return choice.finish == FinishReason::kLength;
}

std::string_view status_of(const ChoiceAnswer& choice) noexcept {
  return is_cut_short(choice) ? "incomplete" : "completed";
}

std::string failure_details(const ApiError& error) {
  std::string out = R"("error":{"code":)";
  switch (error.error.code) {
    case Code::kResourceExhausted:
      out += R"("rate_limit_exceeded")";
      break;
    case Code::kInvalidArgument:
      out += R"("invalid_prompt")";
      break;
    default:
      out += R"("server_error")";
  }
  out += R"(,"message":)";
  append_json_string(out, to_valid_utf8(error.error.message));
  out += R"(},"incomplete_details":null)";
  return out;
}

void append_part(std::string& out, std::string_view text, std::span<const TokenLogprob> logprobs) {
  out += R"({"type":"output_text","annotations":[],"logprobs":[)";
  append_logprobs(out, logprobs);
  out += R"(],"text":)";
  append_json_string(out, text);
  out += '}';
}

}  // namespace

ResponsesEncoder::ResponsesEncoder(const AnswerIdentity& identity, const AnswerShape& shape)
    : identity_(identity),
      shape_(&shape),
      item_id_(concat("msg_", identity.id.substr(kIdPrefix.size()))),
      place_(concat(R"(,"item_id":")", item_id_, R"(","output_index":0,"content_index":0)")) {
  open("response.output_text.delta", text_head_);
  text_head_ += concat(place_, R"(,"delta":")");
}

void ResponsesEncoder::open(std::string_view type, std::string& out) const {
  out += "event: ";
  out += type;
  out += "\ndata: {\"type\":\"";
  out += type;
  out += '"';
}

void ResponsesEncoder::close(std::string& out) {
  out += R"(,"sequence_number":)";
  append_json_number(out, sequence_++);
  out += "}\n\n";
}

void ResponsesEncoder::append_head(std::string& out, std::string_view status,
                                   std::string_view details) const {
  out += R"({"id":)";
  append_json_string(out, identity_.id);
  out += R"(,"object":"response","created_at":)";
  append_json_number(out, identity_.created);
  out += R"(,"status":")";
  out += status;
  out += R"(","background":false,)";
  out += details;
  out += R"(,"model":)";
  append_json_string(out, identity_.model);
  out += ',';
  out += shape_->settings;
  if (!shape_->service_tier.empty()) {
    out += R"(,"service_tier":)";
    append_json_string(out, shape_->service_tier);
  }
}

void ResponsesEncoder::append_item(std::string& out, std::string_view status,
                                   const ChoiceAnswer* content) const {
  out += concat(R"({"id":")", item_id_, R"(","type":"message","status":")", status,
                R"(","role":"assistant","content":[)");
  if (content != nullptr) append_part(out, content->text, content->logprobs);
  out += "]}";
}

void ResponsesEncoder::begin_response(std::string& out) {
  for (const std::string_view type : {"response.created", "response.in_progress"}) {
    open(type, out);
    out += R"(,"response":)";
    append_head(out, "in_progress", kNoDetails);
    out += R"(,"output":[],"usage":null})";
    close(out);
  }
  begun_ = true;
}

void ResponsesEncoder::begin_choice(std::uint32_t /*index*/, std::string& out) {
  begin_response(out);
  open("response.output_item.added", out);
  out += R"(,"output_index":0,"item":)";
  append_item(out, "in_progress", nullptr);
  close(out);
  open("response.content_part.added", out);
  out += place_;
  out += R"(,"part":)";
  append_part(out, "", {});
  close(out);
}

void ResponsesEncoder::text(std::uint32_t /*index*/, std::string_view text,
                            std::span<const TokenLogprob> logprobs, ChoiceAnswer& /*choice*/,
                            std::string& out) {
  out += text_head_;
  append_json_text(out, text);
  out += R"(","logprobs":[)";
  append_logprobs(out, logprobs);
  out += ']';
  close(out);
}

void ResponsesEncoder::end_choice(std::uint32_t /*index*/, const ChoiceAnswer& choice,
                                  std::string& out) {
  open("response.output_text.done", out);
  out += place_;
  out += R"(,"text":)";
  append_json_string(out, choice.text);
  out += R"(,"logprobs":[)";
  append_logprobs(out, choice.logprobs);
  out += ']';
  close(out);
  open("response.content_part.done", out);
  out += place_;
  out += R"(,"part":)";
  append_part(out, choice.text, choice.logprobs);
  close(out);
  open("response.output_item.done", out);
  out += R"(,"output_index":0,"item":)";
  append_item(out, status_of(choice), &choice);
  close(out);
}

void ResponsesEncoder::end(const ChoiceAnswer& first, const Usage& usage, std::string& out) {
  open(is_cut_short(first) ? "response.incomplete" : "response.completed", out);
  out += R"(,"response":)";
  whole(first, usage, out);
  close(out);
}

void ResponsesEncoder::whole(const ChoiceAnswer& choice, const Usage& usage,
                             std::string& out) const {
  append_head(out, status_of(choice), is_cut_short(choice) ? kCutShort : kNoDetails);
  out += R"(,"output":[)";
  append_item(out, status_of(choice), &choice);
  out += R"(],"usage":)";
  append_responses_usage(out, usage);
  out += '}';
}

void ResponsesEncoder::fail(const ChoiceAnswer& first, const ApiError& error, std::string& out) {
  if (!begun_) begin_response(out);
  open("response.failed", out);
  out += R"(,"response":)";
  append_head(out, "failed", failure_details(error));
  out += R"(,"output":[)";
  if (first.begun) append_item(out, "incomplete", &first);
  out += R"(],"usage":null})";
  close(out);
}

}  // namespace sluice
