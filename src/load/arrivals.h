// Arrivals: when requests of an open loop are due, counted from its start. They come at their rate
// whatever becomes of the requests before them: that is what makes the loop open.
// Thread: one at a time.
#pragma once

#include "base/clock.h"
#include "load/load_random.h"

namespace sluice {

enum class ArrivalProcess {
  kPoisson,   // independent users: gaps are exponential
  kConstant,  // all gaps are alike
};

class Arrivals {
 public:
  // `rate`: per second, above 0.
  Arrivals(ArrivalProcess process, double rate, std::uint64_t seed) noexcept;

  // Offset from the start; never falls. The first of kConstant is 0.
  [[nodiscard]] Duration next() noexcept;

 private:
  const ArrivalProcess process_;
  const double rate_;
  LoadRandom random_;
  double seconds_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace sluice
