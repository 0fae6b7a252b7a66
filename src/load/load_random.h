// LoadRandom: a stream of random numbers that is the same on every machine and library for one seed
// (SplitMix64, Steele et al. 2014; the distributions of <random> are each library's own).
// Thread: one at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace sluice {

class LoadRandom {
 public:
  // Streams of one seed with different numbers are independent of each other.
  explicit LoadRandom(std::uint64_t seed, std::uint64_t number = 0) noexcept
      : state_(mixed(seed) ^ mixed(number * 0xD1342543DE82EF95U + 1)) {}

  std::uint64_t next() noexcept {
    state_ += 0x9E3779B97F4A7C15U;
    return mixed(state_);
  }
  // In [0, 1).
  double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // In [0, below), below > 0.
  std::uint64_t below(std::uint64_t below) noexcept {
    return static_cast<std::uint64_t>(uniform() * static_cast<double>(below));
  }
  // Mean 1.
  double exponential() noexcept { return -std::log1p(-uniform()); }
  // Mean 0, standard deviation 1 (Box and Muller).
  double normal() noexcept {
    return std::sqrt(2 * exponential()) * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  static std::uint64_t mixed(std::uint64_t z) noexcept {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace sluice
