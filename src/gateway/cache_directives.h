// Cache hints in every dialect that clients speak (OpenAI's prompt_cache_*, Anthropic's
// cache_control, vLLM's cache_salt, llama.cpp's cache_prompt, LiteLLM's cache, HTTP's
// Cache-Control) as the contract's CacheHints. A time to live that we don't know is no error.
// Thread: any.
#pragma once

#include <cstdint>
#include <optional>

#include "contract/generation.h"
#include "gateway/http_message.h"
#include "gateway/openai_fields.h"

namespace sluice {

// The breakpoints of a prompt.
struct CacheMarks {
  std::uint32_t breakpoints = 0;
  std::optional<std::uint32_t> ttl_seconds;  // the longest that one of them asks for
};

// Whether `fields` (a content part, a message or the whole request) ends in a breakpoint.
bool read_cache_mark(Fields& fields, CacheMarks& marks);

// What the whole request says; `marks` are those of its prompt.
[[nodiscard]] CacheHints read_cache_hints(Fields& fields, const HttpHeaders& headers,
                                          const CacheMarks& marks);

}  // namespace sluice
