// UTF-8 (RFC 3629): is it valid, and where does its last whole character end. No surrogates, no
// overlong forms, nothing above U+10FFFF. Thread: any (pure functions).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace sluice {

// Bytes of the longest character.
inline constexpr std::size_t kMaxUtf8Bytes = 4;

// Offset of the first byte that no valid text can hold in its place; nothing if all of `text` is
// valid.
[[nodiscard]] std::optional<std::size_t> find_invalid_utf8(std::string_view text) noexcept;

// How many bytes at the end of `text` are the beginning of a character that more bytes could
// complete: 0 to 3. Bytes that can't become valid are not held back, so a reader that waits for the
// rest never waits in vain.
[[nodiscard]] std::size_t incomplete_utf8_tail(std::string_view text) noexcept;

}  // namespace sluice
