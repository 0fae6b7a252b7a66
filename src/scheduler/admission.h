// Admission: the mailbox between the wires and the engine thread, and the bound on what waits.
// Bounded by Limits::max_queued_requests and max_queued_prompt_tokens. At a bound the request is
// refused at once with kResourceExhausted and a time to retry after; nothing of it is kept. After
// close() everything is refused with kUnavailable. Thread: reserve, submit, close, load any;
// take_submitted and set_load engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "contract/generation.h"
#include "contract/limits.h"
#include "engine/batch.h"
#include "stream/doorbell.h"
#include "stream/token_stream.h"

namespace sluice {

// What a prompt's KV may be shared with.
struct Caching {
  std::string scope;  // requests share with the same scope only
  bool read = true;
  bool store = true;
};

// A request that is ready for the engine: validated, tokenised, with one sampler for each choice.
struct Submission {
  std::vector<Token> prompt;  // at least one token, fewer than the context holds
  std::vector<std::unique_ptr<SamplerState>> samplers;
  Stopping stopping;
  Caching caching;
  std::int32_t priority = 0;
  std::string flow;  // whose it is: flows share the slots fairly (FairQueue)
  TimePoint deadline = kForever;
  WireId wire_id = 0;
  std::shared_ptr<WireQueue> wire;
};

class Admission {
 public:
  // A place among the waiting requests; gives it back when it goes.
  class Ticket {
   public:
    Ticket(Ticket&& other) noexcept
        : admission_(std::exchange(other.admission_, nullptr)),
          requests_(other.requests_),
          tokens_(other.tokens_) {}
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { give_back(); }
    void give_back() noexcept;

   private:
    friend class Admission;
    Ticket(Admission* admission, std::uint32_t requests) noexcept
        : admission_(admission), requests_(requests) {}
    Admission* admission_;
    std::uint32_t requests_;
    std::uint64_t tokens_ = 0;
  };

  // What the engine thread takes over.
  struct Admitted {
    RequestId id{};
    Submission submission;
    StreamWriter writer;
    Ticket ticket;
    TimePoint admitted_at;
  };

  Admission(const Limits& limits, Clock& clock, Doorbell& doorbell, Metrics& metrics);

  // A place for a request of `choices` choices, to be held while its prompt is prepared.
  [[nodiscard]] Result<Ticket> reserve(std::uint32_t choices) EXCLUDES(mutex_);

  // Gives the request to the engine thread. Refused with kDeadlineExceeded if its time is up
  // already.
  [[nodiscard]] Result<StreamReader> submit(Ticket ticket, Submission submission) EXCLUDES(mutex_);

  // From now on everything is refused with kUnavailable. What was submitted before still runs.
  void close() noexcept EXCLUDES(mutex_);
  [[nodiscard]] bool closed() const noexcept EXCLUDES(mutex_);

  [[nodiscard]] Load load() const noexcept EXCLUDES(mutex_);

  // What was submitted since the last call. Swaps into `out`, which is cleared first.
  void take_submitted(std::vector<Admitted>& out) noexcept EXCLUDES(mutex_);
  void set_load(const Load& load) noexcept EXCLUDES(mutex_);

 private:
  [[nodiscard]] Error refusal(const std::string& what) const REQUIRES(mutex_);

  const Limits limits_;
  Clock& clock_;
  Doorbell& doorbell_;
  Counter refused_;
  Gauge queued_requests_;
  Gauge queued_prompt_tokens_;

  mutable Mutex mutex_;
  std::vector<Admitted> submitted_ GUARDED_BY(mutex_);
  std::uint32_t waiting_requests_ GUARDED_BY(mutex_) = 0;
  std::uint64_t waiting_tokens_ GUARDED_BY(mutex_) = 0;
  std::uint64_t last_id_ GUARDED_BY(mutex_) = 0;
  bool closed_ GUARDED_BY(mutex_) = false;
  Load load_ GUARDED_BY(mutex_);
};

}  // namespace sluice
