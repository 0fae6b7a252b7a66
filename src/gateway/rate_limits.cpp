#include "gateway/rate_limits.h"

#include <algorithm>
#include <utility>

#include "base/concat.h"

namespace sluice {

struct RateLimits::Entry {
  std::optional<Refill> requests;
  std::optional<Refill> tokens;
  std::uint32_t streams = 0;  // 0: no limit
  std::uint32_t running = 0;

  [[nodiscard]] bool idle(TimePoint now) noexcept {
    const auto full = [now](std::optional<Refill>& refill) {
      return !refill || refill->wait_for_all(now).count() == 0;
    };
    return running == 0 && full(requests) && full(tokens);
  }
};

namespace {

constexpr std::chrono::milliseconds kStreamRetry{1'000};  // nobody knows when a request will end
constexpr std::size_t kLeastForgetAt = 64;

void set_limit(std::optional<Refill>& refill, std::uint32_t limit, TimePoint now) {
  if (limit == 0) {
    refill.reset();
  } else if (!refill) {
    refill.emplace(limit, now);
  } else if (refill->limit() != limit) {
    refill->set_limit(limit, now);
  }
}

std::chrono::microseconds wait_for(std::optional<Refill>& refill, std::uint64_t units,
                                   TimePoint now) noexcept {
  return refill ? refill->wait_for(units, now) : std::chrono::microseconds{0};
}

std::optional<RateFigure> figure(std::optional<Refill>& refill, TimePoint now) noexcept {
  if (!refill) return std::nullopt;
  return RateFigure{refill->limit(), refill->remaining(now),
                    std::chrono::ceil<std::chrono::milliseconds>(refill->wait_for_all(now))};
}

bool unlimited(const KeyLimits& limits) noexcept {
  return limits.requests_per_minute == 0 && limits.tokens_per_minute == 0 && limits.streams == 0;
}

tl::unexpected<Error> exhausted(const ApiKey& key, const std::string& limit,
                                std::optional<std::chrono::milliseconds> retry_after) {
  return tl::unexpected(
      Error{Code::kResourceExhausted, concat("the key ", key.name, " has ", limit), retry_after});
}

}  // namespace

RateLimits::Reservation::Reservation(RateLimits& limits, std::shared_ptr<Entry> entry,
                                     std::uint64_t tokens, std::uint32_t choices) noexcept
    : limits_(&limits), entry_(std::move(entry)), tokens_(tokens), choices_(choices) {}

RateLimits::Reservation::Reservation(Reservation&& other) noexcept
    : limits_(other.limits_),
      entry_(std::move(other.entry_)),
      tokens_(other.tokens_),
      choices_(other.choices_) {}

RateLimits::Reservation::~Reservation() {
  if (entry_) limits_->give_back(*entry_, choices_, 1, tokens_, 0);
}

void RateLimits::Reservation::settle(std::uint64_t tokens) noexcept {
  if (const auto entry = std::exchange(entry_, nullptr))
    limits_->give_back(*entry, choices_, 0, tokens_, tokens);
}

RateLimits::RateLimits(const Clock& clock) noexcept : clock_(clock) {}

RateLimits::~RateLimits() = default;

Result<RateLimits::Reservation> RateLimits::reserve(const ApiKey& key, std::uint64_t tokens,
                                                    std::uint32_t choices) {
  const KeyLimits& limits = key.limits;
  if (unlimited(limits)) return Reservation(*this, nullptr, tokens, choices);
  if (limits.tokens_per_minute != 0 && tokens > limits.tokens_per_minute) {
    return exhausted(key,
                     concat(limits.tokens_per_minute,
                            " tokens a minute (tpm), and the request may "
                            "take ",
                            tokens, ": its prompt and max_tokens together"),
                     std::nullopt);
  }
  if (limits.streams != 0 && choices > limits.streams) {
    return exhausted(
        key,
        concat(limits.streams, " answers at once (streams), and the request asks for ", choices),
        std::nullopt);
  }
  const MutexLock lock(mutex_);
  auto entry = entry_of(key);
  const TimePoint now = clock_.now();
  if (entry->streams != 0 && entry->running + choices > entry->streams) {
    return exhausted(
        key, concat(entry->streams, " answers at once (streams), and too many are under way"),
        kStreamRetry);
  }
  const auto requests_wait = wait_for(entry->requests, 1, now);
  const auto tokens_wait = wait_for(entry->tokens, tokens, now);
  if (const auto wait = std::max(requests_wait, tokens_wait); wait.count() > 0) {
    const bool by_tokens = tokens_wait > requests_wait;
    return exhausted(
        key,
        by_tokens ? concat(limits.tokens_per_minute,
                           " tokens a minute (tpm), and fewer left than the request "
                           "may take")
                  : concat(limits.requests_per_minute, " requests a minute (rpm), and none left"),
        std::chrono::ceil<std::chrono::milliseconds>(wait));
  }
  if (entry->requests) entry->requests->take(1);
  if (entry->tokens) entry->tokens->take(tokens);
  entry->running += choices;
  return Reservation(*this, std::move(entry), tokens, choices);
}

RateFigures RateLimits::figures(const ApiKey& key) {
  if (unlimited(key.limits)) return {};
  const MutexLock lock(mutex_);
  const auto entry = entry_of(key);
  const TimePoint now = clock_.now();
  return {figure(entry->requests, now), figure(entry->tokens, now)};
}

std::size_t RateLimits::entries() const noexcept {
  const MutexLock lock(mutex_);
  return entries_.size();
}

// The key's entry, with the limits that the key has now.
std::shared_ptr<RateLimits::Entry> RateLimits::entry_of(const ApiKey& key) {
  auto found = entries_.find(key.name);
  if (found == entries_.end()) {
    if (entries_.size() >= forget_at_) forget_the_idle();
    found = entries_.emplace(key.name, std::make_shared<Entry>()).first;
  }
  Entry& entry = *found->second;
  const TimePoint now = clock_.now();
  set_limit(entry.requests, key.limits.requests_per_minute, now);
  set_limit(entry.tokens, key.limits.tokens_per_minute, now);
  entry.streams = key.limits.streams;
  return found->second;
}

// An entry that has all it may have is the same as none.
void RateLimits::forget_the_idle() {
  const TimePoint now = clock_.now();
  std::erase_if(entries_, [now](const auto& named) { return named.second->idle(now); });
  forget_at_ = std::max(kLeastForgetAt, entries_.size() * 2);
}

void RateLimits::give_back(Entry& entry, std::uint32_t choices, std::uint64_t requests,
                           std::uint64_t reserved, std::uint64_t used) noexcept {
  const MutexLock lock(mutex_);
  entry.running -= choices;
  if (entry.requests) entry.requests->give_back(requests);
  if (!entry.tokens) return;
  if (used <= reserved) {
    entry.tokens->give_back(reserved - used);
  } else {
    entry.tokens->take(used - reserved);
  }
}

std::string duration_text(std::chrono::milliseconds duration) {
  const auto total = std::max<std::int64_t>(duration.count(), 0);
  if (total == 0) return "0s";
  if (total < 1'000) return concat(total, "ms");
  std::string text;
  if (total >= 3'600'000) text += concat(total / 3'600'000, 'h');
  if (total >= 60'000) text += concat(total / 60'000 % 60, 'm');
  text += std::to_string(total / 1'000 % 60);
  if (const auto thousandths = total % 1'000; thousandths != 0) {
    std::string digits = std::to_string(1'000 + thousandths).substr(1);
    digits.resize(digits.find_last_not_of('0') + 1);
    text += '.' + digits;
  }
  return text + 's';
}

void add_headers(const RateFigures& figures, HttpHeaders& headers) {
  const auto add = [&headers](const std::string& of, const std::optional<RateFigure>& figure) {
    if (!figure) return;
    headers.add("x-ratelimit-limit-" + of, std::to_string(figure->limit));
    headers.add("x-ratelimit-remaining-" + of, std::to_string(figure->remaining));
    headers.add("x-ratelimit-reset-" + of, duration_text(figure->reset));
  };
  add("requests", figures.requests);
  add("tokens", figures.tokens);
}

}  // namespace sluice
