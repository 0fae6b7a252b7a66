#include "contract/utf8.h"

#include <algorithm>
#include <cstdint>

namespace sluice {
namespace {

// What follows a lead byte: how many bytes the character has, and the range of the second one (RFC
// 3629, section 4).
struct Lead {
  std::size_t bytes = 0;  // 0: no character begins with it
  std::uint8_t second_low = 0x80;
  std::uint8_t second_high = 0xBF;
};

constexpr Lead lead_of(std::uint8_t byte) noexcept {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

// How many bytes at the front of `text` (not empty) fit one character. It is whole if they are
// lead.bytes many.
std::size_t fitting_bytes(std::string_view text, const Lead& lead) noexcept {
  if (lead.bytes == 0) return 0;
  const std::size_t end = std::min(lead.bytes, text.size());
  std::size_t fit = 1;
  for (; fit < end; ++fit) {
    const auto byte = static_cast<std::uint8_t>(text[fit]);
    const std::uint8_t low = fit == 1 ? lead.second_low : 0x80;
    const std::uint8_t high = fit == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) break;
  }
  return fit;
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const Lead lead = lead_of(static_cast<std::uint8_t>(text[at]));
    const std::size_t fit = fitting_bytes(text.substr(at), lead);
    if (fit == 0 || fit < lead.bytes) return at + fit;
    at += fit;
  }
  return std::nullopt;
}

std::size_t incomplete_utf8_tail(std::string_view text) noexcept {
  const std::size_t longest = std::min(text.size(), kMaxUtf8Bytes - 1);
  for (std::size_t length = 1; length <= longest; ++length) {
    const std::string_view tail = text.substr(text.size() - length);
    const auto first = static_cast<std::uint8_t>(tail.front());
    if ((first & 0xC0) == 0x80) continue;  // a continuation byte: the lead is further left
    const Lead lead = lead_of(first);
    const bool beginning = lead.bytes > length && fitting_bytes(tail, lead) == length;
    return beginning ? length : 0;
  }
  return 0;
}

}  // namespace sluice
