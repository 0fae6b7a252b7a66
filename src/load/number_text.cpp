#include "load/number_text.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace sluice {

std::string fixed_text(double number, int digits) {
  std::array<char, 64> text;
  const int size = std::snprintf(text.data(), text.size(), "%.*f", digits, number);
  return {text.data(), static_cast<std::size_t>(size)};
}

std::string short_text(double number) {
  const double size = std::abs(number);
  const int digits = size >= 100 || size == 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  std::string text = fixed_text(number, digits);
  if (digits > 0) return text;
  for (std::size_t at = text.size(); at > 3 && text[at - 4] != '-';) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string ms_text(double microseconds) { return short_text(microseconds / 1000); }

}  // namespace sluice
