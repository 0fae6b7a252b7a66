// Fnv1a: a 64-bit hash of bytes that is the same on every machine and in every version; not against
// those who choose the bytes to collide. http://www.isthe.com/chongo/tech/comp/fnv. Thread: any
// (values).
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

class Fnv1a {
 public:
  void add(std::string_view bytes) noexcept {
    for (const char byte : bytes)
      hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

}  // namespace sluice
