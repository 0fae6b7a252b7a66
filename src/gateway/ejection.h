// Ejection: whether a replica is left alone because its requests failed one after the other. After
// --eject-time-ms it is tried with one request at a time (half-open) until one succeeds; a try that
// fails doubles the time, up to kMaxEjection. Thread: one at a time.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace sluice {

enum class Standing {
  kGood,
  kHalfOpen,  // may be tried now
  kEjected,
};

class Ejection {
 public:
  static constexpr std::uint32_t kFailuresToEject = 3;
  static constexpr std::chrono::milliseconds kMaxEjection{30'000};

  explicit Ejection(std::chrono::milliseconds time) noexcept : first_(time), time_(time) {}

  // True if this ejects it.
  bool failed(TimePoint now) noexcept;
  void succeeded() noexcept;
  // A request is sent while it is half-open. If that never ends, another is let through when the
  // time has passed again.
  void tried(TimePoint now) noexcept;

  [[nodiscard]] Standing standing(TimePoint now) const noexcept;

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds time_;
  std::uint32_t failures_ = 0;  // on end
  bool ejected_ = false;
  bool trying_ = false;
  TimePoint until_{};
};

}  // namespace sluice
