#include "gateway/refill.h"

#include <algorithm>
#include <limits>

namespace sluice {
namespace {

constexpr std::int64_t kUnit = 60'000'000;  // microseconds of a minute
constexpr std::int64_t kDeepest = std::numeric_limits<std::int64_t>::min() / 2;
constexpr std::uint64_t kMostUnits = std::uint64_t{1} << 32;  // in one call

std::int64_t cost(std::uint64_t units) noexcept {
  return static_cast<std::int64_t>(std::min(units, kMostUnits)) * kUnit;
}

}  // namespace

Refill::Refill(std::uint32_t limit, TimePoint now) noexcept
    : limit_(limit), level_(full()), refilled_at_(now) {}

void Refill::set_limit(std::uint32_t limit, TimePoint now) noexcept {
  refill(now);
  limit_ = limit;
  level_ = std::min(level_, full());
}

std::chrono::microseconds Refill::wait_for(std::uint64_t units, TimePoint now) noexcept {
  refill(now);
  const std::int64_t missing = cost(units) - level_;
  if (missing <= 0) return std::chrono::microseconds{0};
  return std::chrono::microseconds{(missing + limit_ - 1) / limit_};
}

void Refill::take(std::uint64_t units) noexcept {
  level_ = std::max(level_ - cost(units), kDeepest);
}

void Refill::give_back(std::uint64_t units) noexcept {
  level_ = std::min(level_ + cost(units), full());
}

std::uint32_t Refill::remaining(TimePoint now) noexcept {
  refill(now);
  return static_cast<std::uint32_t>(std::max<std::int64_t>(level_, 0) / kUnit);
}

void Refill::refill(TimePoint now) noexcept {
  const auto passed =
      std::chrono::duration_cast<std::chrono::microseconds>(now - refilled_at_).count();
  if (passed <= 0) return;
  const std::int64_t until_full = (full() - level_) / limit_ + 1;
  level_ = passed >= until_full ? full() : level_ + passed * limit_;
  refilled_at_ += std::chrono::microseconds(passed);
}

std::int64_t Refill::full() const noexcept { return std::int64_t{limit_} * kUnit; }

}  // namespace sluice
