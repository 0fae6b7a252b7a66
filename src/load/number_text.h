// Numbers as people read them. Thread: any.
#pragma once

#include <string>

namespace sluice {

// With so many digits behind the point.
[[nodiscard]] std::string fixed_text(double number, int digits);
// About three digits: "0.123", "12.3", "4,560".
[[nodiscard]] std::string short_text(double number);
// As milliseconds, without the unit; "-" where there is none.
[[nodiscard]] std::string ms_text(double microseconds);

}  // namespace sluice
