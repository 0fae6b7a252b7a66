// ReplicaStream::Core: between whoever feeds it (the step stream, a Generate call) and the
// coroutine that reads it. It counts the credit: what was granted and has not come, and what was
// taken and is not granted anew. New credit is told when half of the whole has been taken, so that
// grants cost little and the replica never waits for a reader that keeps up. Bounded by the credit:
// an arrival beyond it is the replica's fault and not kept. Thread: its I/O thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "contract/generation.h"
#include "gateway/asio.h"
#include "gateway/gateway_limits.h"
#include "gateway/replica_stream.h"
#include "gateway/replica_table.h"
#include "gateway/wake_up.h"

namespace sluice {

struct StreamCredit {
  std::uint32_t deltas = 0;
  std::uint32_t bytes = 0;
};

class ReplicaStream::Core {
 public:
  // How the replica is told. Not called any more once the stream has ended.
  struct Upstream {
    std::function<void(StreamCredit)> grant;
    std::function<void()> cancel;
  };

  // `reader` lives until abandon().
  Core(const GatewayLimits& limits, Attempt attempt, WakeUp& reader);

  // For who feeds.
  void connect(Upstream upstream) { upstream_ = std::move(upstream); }
  [[nodiscard]] StreamCredit credit() const noexcept { return credit_; }
  [[nodiscard]] bool has_credit() const noexcept { return credit_.deltas > 0 && credit_.bytes > 0; }
  // Whether the replica may send this now, as docs/contract.md counts.
  [[nodiscard]] bool covers(const ReceivedDelta& received) const noexcept;
  void deliver(ReceivedDelta&& received);  // uses credit as far as there is some
  void end(Result<void> how);              // further calls do nothing
  // After the others: resumes the reader if there is something for it.
  void wake();

  // For who reads.
  [[nodiscard]] Arrival take();
  void abandon();

 private:
  void grant_what_was_taken();

  const StreamCredit whole_;
  StreamCredit credit_;
  StreamCredit taken_;     // from the inbox, and not granted anew
  StreamCredit in_inbox_;  // what the deltas in it cost
  Arrival inbox_;
  bool ended_ = false;
  Attempt attempt_;
  Upstream upstream_;
  WakeUp* reader_;  // null once nobody reads
};

}  // namespace sluice
