#include "access/hex.h"

#include <openssl/rand.h>

#include <array>
#include <string_view>

#include "base/check.h"

namespace sluice {

std::string to_hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const auto byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string random_hex(std::size_t bytes) {
  std::array<std::uint8_t, 32> random{};
  CHECK(bytes <= random.size(), "callers ask for a key or an id");
  CHECK(RAND_bytes(random.data(), static_cast<int>(bytes)) == 1, "the system has random bytes");
  return to_hex(std::span(random).first(bytes));
}

}  // namespace sluice
