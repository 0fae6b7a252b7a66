// JSON that is written by hand, where a serialiser would cost more than the text: strings with
// their escapes and numbers, appended to what is there. Thread: any (pure functions).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

// `text` is valid UTF-8. Without the quotes.
void append_json_text(std::string& out, std::string_view text);

// With the quotes.
void append_json_string(std::string& out, std::string_view text);

void append_json_number(std::string& out, std::uint64_t number);
// The shortest text that reads back as the same float. JSON has no infinities and no NaN: OpenAI's
// -9999 stands for them.
void append_json_number(std::string& out, float number);

}  // namespace sluice
