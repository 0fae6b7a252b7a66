#include "tools/terminal_text.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "contract/utf8.h"

namespace sluice {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// C0 and DEL; of them only line feed and tab are harmless.
bool steers_terminal(char c) noexcept {
  const auto byte = static_cast<std::uint8_t>(c);
  return (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F;
}

// `text` is valid UTF-8. C1 control characters are C2 80 to C2 9F.
std::string harmless(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool c1 = text[i] == '\xC2' && static_cast<std::uint8_t>(text[i + 1]) < 0xA0;
    if (c1 || steers_terminal(text[i])) {
      safe += kReplacement;
      i += c1 ? 1 : 0;
    } else {
      safe += text[i];
    }
  }
  return safe;
}

// One replacement for each run of bytes that fits the beginning of a character, as Unicode
// recommends (section 3.9).
std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (std::optional<std::size_t> at = find_invalid_utf8(bytes); at;
       at = find_invalid_utf8(bytes)) {
    const std::string_view before = bytes.substr(0, *at);
    const std::size_t cut = incomplete_utf8_tail(before);
    text += before.substr(0, before.size() - cut);
    text += kReplacement;
    bytes.remove_prefix(*at + (cut == 0 ? 1 : 0));
  }
  text += bytes;
  return text;
}

}  // namespace

std::string TerminalText::push(std::string_view bytes) {
  held_ += bytes;
  const std::size_t whole = held_.size() - incomplete_utf8_tail(held_);
  std::string shown = harmless(replace_invalid_utf8(std::string_view(held_).substr(0, whole)));
  held_.erase(0, whole);
  return shown;
}

std::string TerminalText::finish() {
  return harmless(replace_invalid_utf8(std::exchange(held_, {})));
}

std::string valid_text(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : replace_invalid_utf8(bytes)) {
    if (c == '\0') {
      text += kReplacement;
    } else {
      text += c;
    }
  }
  return text;
}

std::string one_line(std::string_view text) {
  std::string line = harmless(replace_invalid_utf8(text));
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return line;
}

}  // namespace sluice
