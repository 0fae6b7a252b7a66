// RetryBudget: retries may be at most so many per hundred requests of the last ten seconds, so that
// a pool that is down isn't hit by each request several times; and kAlways in any case, so that a
// quiet gateway retries too. Bounded: one count for each second. Thread: one at a time.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"

namespace sluice {

class RetryBudget {
 public:
  static constexpr std::uint32_t kAlways = 10;

  explicit RetryBudget(std::uint32_t percent) noexcept : percent_(percent) {}

  void count_request(TimePoint now) noexcept;
  // False: it is spent.
  [[nodiscard]] bool take(TimePoint now) noexcept;

 private:
  static constexpr std::int64_t kSeconds = 10;
  struct Second {
    std::int64_t at = -1;
    std::uint32_t requests = 0;
    std::uint32_t retries = 0;
  };
  Second& second(TimePoint now) noexcept;

  std::uint32_t percent_;
  std::array<Second, kSeconds> seconds_{};
};

}  // namespace sluice
