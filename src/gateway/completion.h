// Completion: one request that generates, from its parsed form to the last byte of its answer:
// chooses a replica, reads its streams, writes what has come in one awaited write, and tries
// another replica as long as the client has seen nothing. The status line waits for the first
// token, at most --commit-after-ms; a silent stream gets comments. Bounded by one write and the
// credit of its streams (--credit-deltas, --credit-bytes for each generation); unstreamed, by the
// answer. Thread: its I/O thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "gateway/alarm.h"
#include "gateway/exchange.h"
#include "gateway/gateway_limits.h"
#include "gateway/gateway_metrics.h"
#include "gateway/openai_request.h"
#include "gateway/openai_response.h"
#include "gateway/rate_limits.h"
#include "gateway/replica_pool.h"
#include "gateway/replica_stream.h"
#include "gateway/request_times.h"
#include "gateway/wake_up.h"

namespace sluice {

class Completion {
 public:
  struct Environment {
    ReplicaPool& pool;
    RateLimits& rates;
    GatewayMetrics& metrics;
    const GatewayLimits& limits;
    const Clock& clock;
  };

  // All references outlive it.
  Completion(const Environment& environment, Exchange& exchange, OpenAiRequest request,
             RequestTimes times);
  ~Completion();
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  [[nodiscard]] Task<void> run();

 private:
  struct Generation {
    ReplicaStream stream;
    std::uint32_t first_choice;
    bool ended = false;
  };

  [[nodiscard]] Task<void> answer();
  // Nothing: the answer is out, or the client gone.
  [[nodiscard]] Task<std::optional<Error>> attempt(const ReplicaPool::Choice& choice);
  void start(const ReplicaPool::Choice& choice);
  [[nodiscard]] bool collect(std::optional<Error>& failure);
  [[nodiscard]] Task<bool> write(std::string_view bytes);
  [[nodiscard]] Task<bool> send();
  [[nodiscard]] Task<bool> keep_alive();
  [[nodiscard]] Task<void> finish();
  [[nodiscard]] Task<void> fail(const Error& error);
  [[nodiscard]] bool may_retry(const Error& error) const noexcept;
  [[nodiscard]] ResponseHead answer_head(const char* content_type) const;
  [[nodiscard]] TimePoint comment_due() const noexcept;
  [[nodiscard]] TimePoint next_event() const noexcept;
  void note_first_token();
  void note_outcome();

  Environment environment_;
  Exchange& exchange_;
  OpenAiRequest request_;
  const RequestTimes times_;
  const std::chrono::system_clock::time_point created_ = std::chrono::system_clock::now();
  std::optional<RateLimits::Reservation> reservation_;
  std::vector<ReplicaId> tried_;

  WakeUp wake_up_;  // before the streams that notify it
  Alarm alarm_;
  std::optional<AnswerEncoder> encoder_;
  std::vector<Generation> generations_;
  std::size_t unfinished_ = 0;
  std::string out_;         // encoded, and not yet written
  bool shown_ = false;      // something of the answer is out, or about to be
  bool gone_ = false;       // the client
  TimePoint started_at_{};  // this attempt
  TimePoint last_write_{};
  std::optional<TimePoint> first_token_at_;
};

}  // namespace sluice
