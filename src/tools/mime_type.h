// What a file's bytes are, from its name and, where that says nothing, from whether they are text.
// Thread: any (pure function).
#pragma once

#include <string_view>

namespace sluice {

// "text/plain" for everything that is read as text, whatever its language;
// "application/octet-stream" where nothing is known.
[[nodiscard]] std::string_view mime_type_of(std::string_view path, std::string_view bytes) noexcept;

}  // namespace sluice
