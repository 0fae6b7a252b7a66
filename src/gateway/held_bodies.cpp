#include "gateway/held_bodies.h"

namespace sluice {

HeldBodies::HeldBodies(std::uint64_t most, Metrics& metrics)
    : most_(most),
      gauge_(metrics.gauge("sluice_http_held_body_bytes",
                           "Long bodies of requests that are not answered yet")) {
  metrics.gauge("sluice_http_held_body_bytes_limit", "The most of them")
      .set(static_cast<double>(most));
}

bool HeldBodies::Share::grow_to(std::size_t body_bytes) noexcept {
  if (body_bytes < kLongBody || body_bytes <= bytes_) return true;
  if (!of_.take(body_bytes - bytes_)) return false;
  bytes_ = body_bytes;
  return true;
}

bool HeldBodies::take(std::size_t bytes) noexcept {
  if (held_.fetch_add(bytes, std::memory_order_relaxed) + bytes > most_) {
    held_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  gauge_.add(static_cast<double>(bytes));
  return true;
}

void HeldBodies::give_back(std::size_t bytes) noexcept {
  if (bytes == 0) return;
  held_.fetch_sub(bytes, std::memory_order_relaxed);
  gauge_.add(-static_cast<double>(bytes));
}

}  // namespace sluice
