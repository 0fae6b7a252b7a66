#include "load/length_distribution.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/concat.h"

namespace sluice {
namespace {

std::optional<double> number_of(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || parsed != end || !std::isfinite(number)) return std::nullopt;
  if (number < 0 || number > LengthDistribution::kMost) return std::nullopt;
  return number;
}

struct Pair {
  double first;
  double second;
};

std::optional<Pair> pair_of(std::string_view text, char between) {
  const std::size_t at = text.find(between);
  if (at == std::string_view::npos) return std::nullopt;
  const auto first = number_of(text.substr(0, at));
  const auto second = number_of(text.substr(at + 1));
  if (!first || !second) return std::nullopt;
  return Pair{*first, *second};
}

}  // namespace

Result<LengthDistribution> LengthDistribution::parse(std::string_view text, std::string_view flag) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = colon == std::string_view::npos ? "fixed" : text.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? text : text.substr(colon + 1);
  if (kind == "fixed") {
    if (const auto tokens = number_of(rest); tokens && *tokens >= 1)
      return LengthDistribution(Kind::kUniform, *tokens, *tokens);
  } else if (kind == "uniform") {
    if (const auto ends = pair_of(rest, '-');
        ends && ends->first >= 1 && ends->first <= ends->second)
      return LengthDistribution(Kind::kUniform, ends->first, ends->second);
  } else if (kind == "normal") {
    if (const auto shape = pair_of(rest, ','); shape && shape->first >= 1)
      return LengthDistribution(Kind::kNormal, shape->first, shape->second);
  } else if (kind == "lognormal") {
    if (const auto shape = pair_of(rest, ','); shape && shape->first >= 1) {
      const double spread = shape->second / shape->first;
      const double variance = std::log1p(spread * spread);
      return LengthDistribution(Kind::kLogNormal, std::log(shape->first) - variance / 2,
                                std::sqrt(variance));
    }
  }
  return invalid(concat(flag, ": \"", text,
                        "\" is none of N, uniform:A-B, normal:MEAN,DEVIATION and "
                        "lognormal:MEAN,DEVIATION, in tokens"));
}

std::uint32_t LengthDistribution::draw(LoadRandom& random) const noexcept {
  double length = 0;
  switch (kind_) {
    case Kind::kUniform:
      length = first_ + std::floor(random.uniform() * (second_ - first_ + 1));
      break;
    case Kind::kNormal:
      length = first_ + second_ * random.normal();
      break;
    case Kind::kLogNormal:
      length = std::exp(first_ + second_ * random.normal());
      break;
  }
  return static_cast<std::uint32_t>(std::clamp(std::round(length), 1.0, kMost));
}

}  // namespace sluice
