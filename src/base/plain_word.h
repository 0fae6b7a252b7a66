// is_plain_word: what may stand in a file of names, a header, a log line and an error as it is.
// Thread: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace sluice {

// 1 to `most` of A-Z a-z 0-9 . _ -
[[nodiscard]] inline bool is_plain_word(std::string_view text, std::size_t most) noexcept {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= most && std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace sluice
