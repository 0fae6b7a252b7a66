#include "gateway/base64.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice {
namespace {

constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoLetter = 0xFF;

constexpr std::array<std::uint8_t, 256> make_values() {
  std::array<std::uint8_t, 256> values{};
  for (auto& value : values) value = kNoLetter;
  for (std::size_t i = 0; i < kLetters.size(); ++i) {
    values[static_cast<std::uint8_t>(kLetters[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}
constexpr std::array<std::uint8_t, 256> kValues = make_values();

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < group.size() ? static_cast<std::uint8_t>(group[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= group.size() ? kLetters[bits >> (18 - 6 * i) & 0x3F] : '=';
    }
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 == 0) {
    for (int padding = 0; padding < 2 && !text.empty() && text.back() == '='; ++padding) {
      text.remove_suffix(1);
    }
  }
  if (text.size() % 4 == 1) return std::nullopt;
  const std::size_t last_letters = text.size() % 4;
  std::string bytes(text.size() / 4 * 3 + (last_letters == 0 ? 0 : last_letters - 1), '\0');
  std::uint8_t seen = 0;  // all values, one over the other
  for (std::size_t at = 0, to = 0; at < text.size(); at += 4) {
    std::uint32_t bits = 0;
    for (std::size_t i = at; i < at + 4; ++i) {
      const std::uint8_t value =
          i < text.size() ? kValues[static_cast<std::uint8_t>(text[i])] : std::uint8_t{0};
      seen |= value;
      bits = bits << 6 | value;
    }
    for (int shift = 16; shift >= 0 && to < bytes.size(); shift -= 8) {
      bytes[to++] = static_cast<char>(bits >> shift & 0xFF);
    }
  }
  if (seen > kLetters.size() - 1) return std::nullopt;
  return bytes;
}

}  // namespace sluice
