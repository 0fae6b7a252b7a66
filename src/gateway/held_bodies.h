// HeldBodies: how many bytes of long request bodies all sessions hold together. A body counts from
// kLongBody on, so that long ones in masses are refused and short ones never are; those are bounded
// by the number of connections. Bounded by --max-held-body-bytes. Thread: any; a Share's is its
// session's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/metrics.h"

namespace sluice {

class HeldBodies {
 public:
  static constexpr std::size_t kLongBody = 64 << 10;

  // What one request's body has of it, until it is destroyed.
  class Share {
   public:
    explicit Share(HeldBodies& of) noexcept : of_(of) {}
    ~Share() { of_.give_back(bytes_); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // The body is so long now. False: all together are above the bound; what was had stays.
    [[nodiscard]] bool grow_to(std::size_t body_bytes) noexcept;

   private:
    HeldBodies& of_;
    std::size_t bytes_ = 0;
  };

  HeldBodies(std::uint64_t most, Metrics& metrics);

 private:
  [[nodiscard]] bool take(std::size_t bytes) noexcept;
  void give_back(std::size_t bytes) noexcept;

  const std::uint64_t most_;
  std::atomic<std::uint64_t> held_{0};
  Gauge gauge_;
};

}  // namespace sluice
