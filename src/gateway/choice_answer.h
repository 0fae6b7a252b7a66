// ChoiceAnswer: what an AnswerEncoder keeps of one choice while it comes in. Thread: any one at a
// time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/generation.h"
#include "gateway/utf8_holdback.h"

namespace sluice {

struct ChoiceAnswer {
  Utf8Holdback holdback;
  bool begun = false;  // something of it has been shown
  std::optional<FinishReason> finish;
  std::uint64_t characters = 0;        // shown so far; completions' logprobs count them
  std::string text;                    // where the end needs all of it
  std::vector<TokenLogprob> logprobs;  // the same

  // Of the generation that begins with this choice.
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
};

// "stop" or "length".
[[nodiscard]] constexpr std::string_view finish_name(std::optional<FinishReason> reason) noexcept {
  return reason == FinishReason::kLength ? "length" : "stop";
}

// The member of a choice that says so.
inline void append_finish(std::string& out, std::optional<FinishReason> reason) {
  out += R"(,"finish_reason":")";
  out += finish_name(reason);
  out += '"';
}

}  // namespace sluice
