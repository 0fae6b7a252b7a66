// Random: a small generator of random numbers with an explicit state (SplitMix64, Steele, Lea and
// Flood 2014). The same on every machine and standard library, so that a seed means the same text
// after an upgrade of either. Thread: one at a time.
#pragma once

#include <cstdint>

namespace sluice {

class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  [[nodiscard]] std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e37'79b9'7f4a'7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58'476d'1ce4'e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d0'49bb'1331'11ebU;
    return z ^ (z >> 31U);
  }

  // At least 0, below 1.
  [[nodiscard]] double uniform() noexcept { return static_cast<double>(next() >> 11U) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace sluice
