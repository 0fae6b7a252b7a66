#include "gateway/ejection.h"

#include <algorithm>

namespace sluice {

bool Ejection::failed(TimePoint now) noexcept {
  if (ejected_ && !trying_) return false;  // sent before it was ejected
  if (!ejected_ && ++failures_ < kFailuresToEject) return false;
  if (ejected_) time_ = std::min(time_ * 2, kMaxEjection);
  ejected_ = true;
  trying_ = false;
  until_ = now + time_;
  return true;
}

void Ejection::succeeded() noexcept {
  ejected_ = false;
  trying_ = false;
  failures_ = 0;
  time_ = first_;
}

void Ejection::tried(TimePoint now) noexcept {
  if (!ejected_) return;
  trying_ = true;
  until_ = now + time_;
}

Standing Ejection::standing(TimePoint now) const noexcept {
  if (!ejected_) return Standing::kGood;
  return now < until_ ? Standing::kEjected : Standing::kHalfOpen;
}

}  // namespace sluice
