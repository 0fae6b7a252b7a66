// exp_of_nonpositive: e^x for x ≤ 0 without a branch or a call, so that compilers turn a loop of it
// into vector code: softmax over a whole vocabulary is the dearest part of sampling. Relative error
// below 3e-7 (exponential_test); below -87 it is 0. e^x = 2^k · e^f with k whole and |f| ≤
// log(2)/2; e^f by its Taylor polynomial of degree 6. Thread: any.
#pragma once

#include <bit>
#include <cstdint>

namespace sluice {

[[nodiscard]] inline float exp_of_nonpositive(float x) noexcept {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kRound =
      12582912.0F;  // 1.5 · 2^23: adding it leaves the nearest whole number in the low bits
  constexpr float kLeast = -87.0F;
  const float clamped = x > kLeast ? x : kLeast;
  const float rounded = clamped * kLog2E + kRound;
  const float k = rounded - kRound;
  // log(2) in two parts, the first so short that its product with k is exact (Cody and Waite 1980).
  const float f = (clamped - k * 0.693359375F) + k * 2.12194440e-4F;
  float p = 1.0F / 720.0F;
  p = p * f + 1.0F / 120.0F;
  p = p * f + 1.0F / 24.0F;
  p = p * f + 1.0F / 6.0F;
  p = p * f + 0.5F;
  p = p * f + 1.0F;
  p = p * f + 1.0F;
  const auto whole = std::bit_cast<std::int32_t>(rounded) - std::bit_cast<std::int32_t>(kRound);
  const float power = std::bit_cast<float>((whole + 127) << 23);
  return x > kLeast ? p * power : 0.0F;
}

}  // namespace sluice
