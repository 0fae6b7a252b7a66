// Utf8Holdback: turns the bytes of an answer, cut anywhere, into pieces that are valid UTF-8 each.
// The beginning of a character waits for its rest; what can't become a character is U+FFFD, one for
// each longest beginning of one (as browsers' decoders do), so that the joined text is the same
// however the bytes were cut. Bounded by three bytes. Thread: any one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "contract/utf8.h"

namespace sluice {

class Utf8Holdback {
 public:
  // The text that is whole now: `bytes` themselves where that is all, else put together in
  // `scratch`.
  [[nodiscard]] std::string_view take(std::string_view bytes, std::string& scratch);

  // No more bytes come: what is held back is no character.
  [[nodiscard]] std::string_view flush() noexcept;

 private:
  std::array<char, kMaxUtf8Bytes - 1> held_{};
  std::size_t held_bytes_ = 0;
};

// `bytes` with U+FFFD in place of what is not UTF-8.
[[nodiscard]] std::string to_valid_utf8(std::string_view bytes);

}  // namespace sluice
