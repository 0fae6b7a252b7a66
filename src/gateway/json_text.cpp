#include "gateway/json_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace sluice {
namespace {

constexpr float kUnsayable = -9999.0F;

// What a byte becomes: itself (0), a backslash and this letter, or \u00XX ('u').
constexpr std::array<char, 256> make_escapes() {
  std::array<char, 256> escapes{};
  for (std::size_t control = 0; control < 0x20; ++control) escapes[control] = 'u';
  escapes['\b'] = 'b';
  escapes['\t'] = 't';
  escapes['\n'] = 'n';
  escapes['\f'] = 'f';
  escapes['\r'] = 'r';
  escapes['"'] = '"';
  escapes['\\'] = '\\';
  return escapes;
}
constexpr std::array<char, 256> kEscapes = make_escapes();

void append_escape(std::string& out, std::uint8_t byte) {
  const char letter = kEscapes[byte];
  out += '\\';
  out += letter;
  if (letter != 'u') return;
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "00";
  out += kDigits[byte >> 4];
  out += kDigits[byte & 0xF];
}

template <typename Number>
void append_number(std::string& out, Number number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  std::size_t plain = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<std::uint8_t>(text[at]);
    if (kEscapes[byte] == 0) continue;
    out.append(text, plain, at - plain);
    append_escape(out, byte);
    plain = at + 1;
  }
  out.append(text, plain);
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  append_json_text(out, text);
  out += '"';
}

void append_json_number(std::string& out, std::uint64_t number) { append_number(out, number); }

void append_json_number(std::string& out, float number) {
  append_number(out, std::isfinite(number) ? number : kUnsayable);
}

}  // namespace sluice
