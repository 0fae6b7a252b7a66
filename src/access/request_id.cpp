#include "access/request_id.h"

#include <algorithm>

#include "access/hex.h"

namespace sluice {

bool is_request_id(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string new_request_id() { return random_hex(16); }

}  // namespace sluice
