// ChatEncoder: /v1/chat/completions, as chunks or whole. Used by AnswerEncoder. Thread: any one at
// a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gateway/choice_answer.h"
#include "gateway/chunk_frame.h"

namespace sluice {

class ChatEncoder {
 public:
  static constexpr std::string_view kIdPrefix = "chatcmpl-";

  ChatEncoder(const AnswerIdentity& identity, const AnswerShape& shape)
      : frame_(identity, "chat.completion.chunk", shape) {}

  void begin_choice(std::uint32_t index, std::string& out) const;
  void text(std::uint32_t index, std::string_view text, std::span<const TokenLogprob> logprobs,
            ChoiceAnswer& choice, std::string& out) const;
  void end_choice(std::uint32_t index, const ChoiceAnswer& choice, std::string& out) const;
  void end(const ChoiceAnswer& /*first*/, const Usage& usage, std::string& out) const {
    frame_.end(usage, out);
  }
  void fail(const ChoiceAnswer& /*first*/, const ApiError& error, std::string& out) const {
    append_error_frame(out, error);
  }

  // The members of a whole answer's choice.
  static void whole_choice(ChoiceAnswer& choice, std::string& out);

 private:
  ChunkFrame frame_;
};

}  // namespace sluice
