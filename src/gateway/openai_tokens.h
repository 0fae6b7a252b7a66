// Counts and log probabilities of tokens as OpenAI's dialects write them. Thread: any (pure
// functions).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "contract/generation.h"

namespace sluice {

// The object `usage` of chat and completions, and that of responses.
void append_usage(std::string& out, const Usage& usage);
void append_responses_usage(std::string& out, const Usage& usage);

// The entries of chat's and responses' lists, without the brackets. A piece that is no text by
// itself is shown as OpenAI shows it ("bytes:\xf0\x9f"), and its bytes are exact.
void append_logprobs(std::string& out, std::span<const TokenLogprob> logprobs);

// The object `logprobs` of completions; `characters` of text came before, and is moved on.
void append_completion_logprobs(std::string& out, std::span<const TokenLogprob> logprobs,
                                std::uint64_t& characters);

}  // namespace sluice
