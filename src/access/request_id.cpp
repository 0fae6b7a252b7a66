#include "access/request_id.h"

#include "access/hex.h"
#include "base/plain_word.h"

namespace sluice {

bool is_request_id(std::string_view text) noexcept { return is_plain_word(text, 128); }

std::string new_request_id() { return random_hex(16); }

}  // namespace sluice
