// concat: joins pieces of text and numbers into one string, for messages. Not for hot paths.
// (g++ 12 has no <format>, and third-party headers stay out of ours.)
// Thread: any.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace sluice {

namespace concat_detail {
inline void append(std::string& out, std::string_view piece) { out += piece; }
inline void append(std::string& out, const char* piece) { out += piece; }
inline void append(std::string& out, char piece) { out += piece; }
template <typename Number>
requires std::integral<Number> || std::floating_point<Number>
void append(std::string& out, Number piece) { out += std::to_string(piece); }
}  // namespace concat_detail

template <typename... Pieces>
[[nodiscard]] std::string concat(const Pieces&... pieces) {
  std::string out;
  (concat_detail::append(out, pieces), ...);
  return out;
}

}  // namespace sluice
