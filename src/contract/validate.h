// What can be said of a request without the model's tokenizer: every field in its range, every
// count within its limit. The first fault found is returned; its message names the field, the
// value's allowed range and, for a limit, the flag. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "contract/generation.h"
#include "contract/limits.h"

namespace sluice {

// Ranges of the contract's own, the same for every server, that a gateway holds its clients to as
// well.
inline constexpr std::int32_t kMaxTopLogprobs = 20;
inline constexpr std::int32_t kMaxPriority = 100;
inline constexpr std::size_t kMaxSessionIdBytes = 256;
inline constexpr std::size_t kMaxCacheSaltBytes = 1024;

// What a request is held against.
struct ServedModel {
  std::string_view name;  // accepted besides "local"
  std::uint32_t context_tokens = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t longest_piece = 1;  // bytes of the longest token
};

// Errors: kInvalidArgument, kNotFound (model).
[[nodiscard]] Result<void> validate(const GenerationRequest& request, const Limits& limits,
                                    const ServedModel& model);

// The parts of it that CountTokens and Embed share.
[[nodiscard]] Result<void> validate_model_name(std::string_view name, const ServedModel& model);
[[nodiscard]] Result<void> validate_prompt(const PromptSource& prompt, const Limits& limits,
                                           const ServedModel& model);
// `field` names the text in the error. UTF-8 (RFC 3629: no surrogates, no overlong forms) without
// NUL.
[[nodiscard]] Result<void> validate_text(std::string_view text, std::string_view field);

// After tokenising: the prompt must leave room for at least one token. `tokens` of prompt. The
// error names both numbers.
[[nodiscard]] Result<void> validate_prompt_tokens(std::size_t tokens, const ServedModel& model);

}  // namespace sluice
