// RateLimits: holds each key to its requests and tokens a minute and its requests under way at once
// (access/key_limits.h). A request reserves what it may use before any work is done for it; what it
// did not use comes back. A minute's worth refills continuously; all of it may be used at once. A
// request that one limit refuses takes nothing of the others (kResourceExhausted, naming the key
// and the limit, with the time when it is worth trying again).
// Bounded by the keys used within the last minute, twice; keys without limits have no entry.
// Thread: any. Must outlive its reservations.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "access/keys.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "gateway/http_message.h"
#include "gateway/refill.h"

namespace sluice {

struct RateFigure {
  std::uint32_t limit = 0;
  std::uint32_t remaining = 0;
  std::chrono::milliseconds reset{};  // until all of it is there again, rounded up
};

// What x-ratelimit-* say; nothing where there is no limit.
struct RateFigures {
  std::optional<RateFigure> requests;
  std::optional<RateFigure> tokens;
};

class RateLimits {
  struct Entry;

 public:
  // Gives everything back when dropped, unless it was settled.
  class Reservation {
   public:
    Reservation(Reservation&& other) noexcept;
    Reservation& operator=(Reservation&&) = delete;
    ~Reservation();

    // The request has ended and took `tokens`: fewer than reserved come back, more are owed by the
    // key's next requests. Once.
    void settle(std::uint64_t tokens) noexcept;

   private:
    friend class RateLimits;
    Reservation(RateLimits& limits, std::shared_ptr<Entry> entry, std::uint64_t tokens,
                std::uint32_t choices) noexcept;
    RateLimits* limits_;
    std::shared_ptr<Entry> entry_;  // null: nothing to give back
    std::uint64_t tokens_;
    std::uint32_t choices_;
  };

  explicit RateLimits(const Clock& clock) noexcept;
  ~RateLimits();
  RateLimits(const RateLimits&) = delete;
  RateLimits& operator=(const RateLimits&) = delete;

  // `tokens`: the most that the request may take, prompt and answer. More than the key has in a
  // whole minute is refused without a time. `choices`: the answers that are made at once, each of
  // which is one of the key's streams.
  [[nodiscard]] Result<Reservation> reserve(const ApiKey& key, std::uint64_t tokens,
                                            std::uint32_t choices = 1) EXCLUDES(mutex_);

  [[nodiscard]] RateFigures figures(const ApiKey& key) EXCLUDES(mutex_);

  [[nodiscard]] std::size_t entries() const noexcept EXCLUDES(mutex_);

 private:
  [[nodiscard]] std::shared_ptr<Entry> entry_of(const ApiKey& key) REQUIRES(mutex_);
  void forget_the_idle() REQUIRES(mutex_);
  void give_back(Entry& entry, std::uint32_t choices, std::uint64_t requests,
                 std::uint64_t reserved, std::uint64_t used) noexcept EXCLUDES(mutex_);

  const Clock& clock_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_ GUARDED_BY(mutex_);
  std::size_t forget_at_ GUARDED_BY(mutex_) = 64;  // entries
};

// About how many tokens a text of so many bytes has: for what a request may take, before it is
// tokenised.
[[nodiscard]] constexpr std::uint64_t tokens_in(std::size_t bytes) noexcept { return bytes / 4; }

// A duration as OpenAI's headers have it (Go's form): "6m0s", "1.2s", "20ms", "0s".
[[nodiscard]] std::string duration_text(std::chrono::milliseconds duration);

// x-ratelimit-{limit,remaining,reset}-{requests,tokens}
void add_headers(const RateFigures& figures, HttpHeaders& headers);

}  // namespace sluice
