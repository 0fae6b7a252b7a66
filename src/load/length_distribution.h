// LengthDistribution: how long prompts and answers are, in tokens.
//   N or fixed:N   uniform:A-B   normal:MEAN,DEVIATION   lognormal:MEAN,DEVIATION
// Mean and deviation are those of the lengths themselves, for lognormal too. What is drawn is
// rounded and kept within 1 and kMost. Thread: any (values).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "load/load_random.h"

namespace sluice {

class LengthDistribution {
 public:
  static constexpr double kMost = 1 << 20;

  // Always `tokens`.
  explicit LengthDistribution(std::uint32_t tokens) noexcept
      : kind_(Kind::kUniform), first_(tokens), second_(tokens) {}

  // The error names `flag` and the form that was expected.
  [[nodiscard]] static Result<LengthDistribution> parse(std::string_view text,
                                                        std::string_view flag);

  [[nodiscard]] std::uint32_t draw(LoadRandom& random) const noexcept;

 private:
  enum class Kind { kUniform, kNormal, kLogNormal };
  LengthDistribution(Kind kind, double first, double second) noexcept
      : kind_(kind), first_(first), second_(second) {}

  Kind kind_;
  double first_;  // least, mean, mean of the logarithm
  double second_;
};

}  // namespace sluice
