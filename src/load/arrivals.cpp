#include "load/arrivals.h"

namespace sluice {

Arrivals::Arrivals(ArrivalProcess process, double rate, std::uint64_t seed) noexcept
    : process_(process), rate_(rate), random_(seed) {}

Duration Arrivals::next() noexcept {
  if (process_ == ArrivalProcess::kPoisson) {
    seconds_ += random_.exponential() / rate_;
  } else {
    seconds_ = static_cast<double>(number_++) / rate_;  // no sum of rounded gaps
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds_));
}

}  // namespace sluice
