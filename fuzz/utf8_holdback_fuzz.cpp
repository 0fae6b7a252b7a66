// Any bytes in any cuts: each piece is valid, and joined they are what a decoder that sees all
// bytes at once, and is written from the definition, makes of them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "contract/utf8.h"
#include "gateway/utf8_holdback.h"
#include "input.h"

namespace sluice {
namespace {

constexpr std::string_view kMark = "\xEF\xBF\xBD";

bool is_whole(std::string_view bytes) {
  if (bytes.size() > kMaxUtf8Bytes || find_invalid_utf8(bytes)) return false;
  return bytes.size() == 1 || (static_cast<std::uint8_t>(bytes.front()) & 0xC0) == 0xC0;
}

// The first character of `bytes`, or the longest beginning of one that stands there, or one byte.
std::string naive(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    std::size_t taken = 0;
    for (std::size_t size = 1; size <= kMaxUtf8Bytes && size <= bytes.size() && taken == 0;
         ++size) {
      if (is_whole(bytes.substr(0, size))) taken = size;
    }
    if (taken > 0) {
      text += bytes.substr(0, taken);
    } else {
      text += kMark;
      taken = 1;
      for (std::size_t size = 2; size < kMaxUtf8Bytes && size <= bytes.size(); ++size) {
        if (incomplete_utf8_tail(bytes.substr(0, size)) == size) taken = size;
      }
    }
    bytes.remove_prefix(taken);
  }
  return text;
}

void check(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Utf8Holdback holdback;
  std::string scratch;
  std::string bytes;
  std::string text;
  while (!input.empty()) {
    const std::string_view cut = input.bytes(input.byte() % 8);
    const std::string_view piece = holdback.take(cut, scratch);
    CHECK(!find_invalid_utf8(piece), "each piece is valid");
    bytes += cut;
    text += piece;
  }
  text += holdback.flush();
  CHECK(text == naive(bytes), "both make the same of it");
  CHECK(to_valid_utf8(bytes) == text, "cuts change nothing");
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::check(data, size);
  return 0;
}
