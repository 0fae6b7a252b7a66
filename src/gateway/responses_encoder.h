// ResponsesEncoder: /v1/responses, as its numbered events or as one Response object. Of one choice.
// Keeps nothing of the text itself: the last events take it from the ChoiceAnswer. Used by
// AnswerEncoder. Thread: any one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gateway/choice_answer.h"
#include "gateway/chunk_frame.h"

namespace sluice {

class ResponsesEncoder {
 public:
  static constexpr std::string_view kIdPrefix = "resp_";

  // `shape` outlives this.
  ResponsesEncoder(const AnswerIdentity& identity, const AnswerShape& shape);

  void begin_choice(std::uint32_t index, std::string& out);
  void text(std::uint32_t index, std::string_view text, std::span<const TokenLogprob> logprobs,
            ChoiceAnswer& choice, std::string& out);
  void end_choice(std::uint32_t index, const ChoiceAnswer& choice, std::string& out);
  void end(const ChoiceAnswer& first, const Usage& usage, std::string& out);
  void fail(const ChoiceAnswer& first, const ApiError& error, std::string& out);

  void whole(const ChoiceAnswer& choice, const Usage& usage, std::string& out) const;

 private:
  void open(std::string_view type, std::string& out) const;
  void close(std::string& out);
  void begin_response(std::string& out);
  // {"id":… up to and with the status, and error and incomplete_details, which go with it.
  void append_head(std::string& out, std::string_view status, std::string_view details) const;
  void append_item(std::string& out, std::string_view status, const ChoiceAnswer* content) const;

  AnswerIdentity identity_;
  const AnswerShape* shape_;
  std::string item_id_;
  std::string place_;  // item_id, output_index and content_index, which all events of the text have
  std::string text_head_;
  std::uint64_t sequence_ = 0;
  bool begun_ = false;
};

}  // namespace sluice
