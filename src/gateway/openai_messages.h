// The conversation of a request as the contract's messages: roles, string and part content, cache
// breakpoints. What is not served (tool calls and their results, a participant's name) is refused
// by its name. Bounded by the body. Thread: any.
#pragma once

#include <string_view>
#include <vector>

#include "contract/generation.h"
#include "gateway/cache_directives.h"
#include "gateway/openai_fields.h"

namespace sluice {

// The list `name` of `fields`; an empty one is a fault.
[[nodiscard]] std::vector<Message> read_messages(Fields& fields, std::string_view name,
                                                 CacheMarks& marks);

// The prompt's end becomes a breakpoint, if it has an end.
void mark_end(std::vector<Message>& messages);

}  // namespace sluice
