// What a request is known by in logs and answers (x-request-id): the caller's own id where that is
// harmless anywhere, else a new one of 128 random bits. Thread: any.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// 1 to 128 of A-Z a-z 0-9 . _ -
[[nodiscard]] bool is_request_id(std::string_view text) noexcept;

[[nodiscard]] std::string new_request_id();

}  // namespace sluice
