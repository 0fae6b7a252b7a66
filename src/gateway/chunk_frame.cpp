#include "gateway/chunk_frame.h"

#include "gateway/json_text.h"
#include "gateway/openai_tokens.h"

namespace sluice {

void append_answer_head(std::string& out, const AnswerIdentity& identity, std::string_view object,
                        std::string_view service_tier) {
  out += R"({"id":)";
  append_json_string(out, identity.id);
  out += R"(,"object":)";
  append_json_string(out, object);
  out += R"(,"created":)";
  append_json_number(out, identity.created);
  out += R"(,"model":)";
  append_json_string(out, identity.model);
  if (!service_tier.empty()) {
    out += R"(,"service_tier":)";
    append_json_string(out, service_tier);
  }
  out += R"(,"choices":[)";
}

ChunkFrame::ChunkFrame(const AnswerIdentity& identity, std::string_view object,
                       const AnswerShape& shape)
    : head_("data: "),
      tail_(shape.include_usage ? "}],\"usage\":null}\n\n" : "}]}\n\n"),
      include_usage_(shape.include_usage) {
  append_answer_head(head_, identity, object, shape.service_tier);
}

void ChunkFrame::open(std::uint32_t index, std::string& out) const {
  out += head_;
  out += R"({"index":)";
  append_json_number(out, std::uint64_t{index});
}

void ChunkFrame::end(const Usage& usage, std::string& out) const {
  if (include_usage_) {
    out += head_;
    out += R"(],"usage":)";
    append_usage(out, usage);
    out += "}\n\n";
  }
  out += "data: [DONE]\n\n";
}

void append_error_frame(std::string& out, const ApiError& error) {
  out += "data: ";
  out += to_json(error);
  out += "\n\n";
}

}  // namespace sluice
