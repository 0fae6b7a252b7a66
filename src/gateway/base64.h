// Base64 (RFC 4648, section 4): with padding when written; with or without when read, and nothing
// but its own letters. Thread: any (pure functions).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

[[nodiscard]] std::string to_base64(std::string_view bytes);

// Nothing if `text` is not base64.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace sluice
