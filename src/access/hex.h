// Bytes as lower-case hexadecimal text, given ones and random ones (for keys and ids; OpenSSL's
// generator, which makes no system call each time). Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sluice {

[[nodiscard]] std::string to_hex(std::span<const std::uint8_t> bytes);

// `bytes` random bytes, at most 32: twice as many digits.
[[nodiscard]] std::string random_hex(std::size_t bytes);

}  // namespace sluice
