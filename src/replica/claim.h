// Claim: held by a call for as long as it wants what another thread is to make for it. Work whose
// claim is gone is skipped. Thread: a Claim: one at a time; a ClaimWatch: any.
#pragma once

#include <memory>

namespace sluice {

class ClaimWatch {
 public:
  [[nodiscard]] bool gone() const noexcept { return held_.expired(); }

 private:
  friend class Claim;
  explicit ClaimWatch(const std::shared_ptr<const char>& held) noexcept : held_(held) {}
  std::weak_ptr<const char> held_;
};

class Claim {
 public:
  Claim() : held_(std::make_shared<const char>('\0')) {}
  [[nodiscard]] ClaimWatch watch() const noexcept { return ClaimWatch(held_); }
  void drop() noexcept { held_.reset(); }

 private:
  std::shared_ptr<const char> held_;
};

}  // namespace sluice
