// WatchBound: how many calls of one kind that stay open for their news (WatchLoad, health's Watch)
// there may be: --max-watches. Beyond it one is refused with kResourceExhausted. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/concat.h"
#include "base/error.h"
#include "base/metrics.h"

namespace sluice {

class WatchBound {
 public:
  WatchBound(std::uint32_t most, Gauge open, Counter refused) noexcept
      : most_(most), open_(open), refused_(refused) {}
  WatchBound(const WatchBound&) = delete;
  WatchBound& operator=(const WatchBound&) = delete;

  struct Leave {
    void operator()(WatchBound* bound) const noexcept { bound->leave(); }
  };
  // A call's own while it is open; the bound outlives it.
  using Place = std::unique_ptr<WatchBound, Leave>;

  [[nodiscard]] Result<Place> enter() {
    if (count_.fetch_add(1) < most_) {
      open_.add(1);
      return Place(this);
    }
    count_.fetch_sub(1);
    refused_.add();
    return fail(Code::kResourceExhausted,
                concat(most_, " such calls are open, and --max-watches is ", most_));
  }

 private:
  void leave() noexcept {
    count_.fetch_sub(1);
    open_.add(-1);
  }

  const std::uint32_t most_;
  Gauge open_;
  Counter refused_;
  std::atomic<std::uint32_t> count_ = 0;
};

}  // namespace sluice
