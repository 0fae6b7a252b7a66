// The UTF-8 scanner against a decoder written from the definition, and the hold-back over any cut.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "contract/utf8.h"

namespace sluice {
namespace {

// Bytes of the character at the front of `text`; 0 if there is none.
std::size_t character_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  if (at(0) < 0x80) return 1;
  const std::size_t bytes = at(0) >= 0xF0 ? 4 : at(0) >= 0xE0 ? 3 : 2;
  if (at(0) < 0xC0 || at(0) > 0xF7 || text.size() < bytes) return 0;
  std::uint32_t point = at(0) & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
    point = point << 6 | (at(i) & 0x3F);
  }
  const std::uint32_t shortest = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  return point < shortest || surrogate || point > 0x10FFFF ? 0 : bytes;
}

bool naive_valid(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

void check_cut(std::string_view text, std::size_t cut) {
  const std::string_view head = text.substr(0, cut);
  const std::size_t held = incomplete_utf8_tail(head);
  CHECK(held < kMaxUtf8Bytes && held <= head.size(), "less than a character is held back");
  if (naive_valid(text)) {
    CHECK(naive_valid(head.substr(0, head.size() - held)), "what is let go of valid text is valid");
  }
}

void check(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(size == 0 ? "" : reinterpret_cast<const char*>(data), size);
  const std::optional<std::size_t> invalid = find_invalid_utf8(text);
  CHECK(!invalid == naive_valid(text), "both agree on what is valid");
  if (invalid) {
    const std::string_view before = text.substr(0, *invalid);
    CHECK(naive_valid(before.substr(0, before.size() - incomplete_utf8_tail(before))),
          "nothing before the named byte is at fault");
  }
  for (std::size_t cut = 0; cut <= size; ++cut) check_cut(text, cut);
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::check(data, size);
  return 0;
}
