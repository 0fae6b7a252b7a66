#include "gateway/replica_stream.h"

#include <algorithm>

#include "gateway/stream_core.h"

namespace sluice {

ReplicaStream::Core::Core(const GatewayLimits& limits, Attempt attempt, WakeUp& reader)
    : whole_{limits.credit_deltas, limits.credit_bytes},
      credit_(whole_),
      attempt_(std::move(attempt)),
      reader_(&reader) {}

bool ReplicaStream::Core::covers(const ReceivedDelta& received) const noexcept {
  if (credit_.deltas == 0) return false;
  const std::size_t bytes = received.delta.bytes.size();
  if (bytes <= credit_.bytes) return true;
  return credit_.bytes > 0 && !received.delta.logprobs.empty();  // such a delta is never split
}

void ReplicaStream::Core::deliver(ReceivedDelta&& received) {
  if (ended_) return;
  const StreamCredit cost = {std::min(1U, credit_.deltas),
                             static_cast<std::uint32_t>(std::min<std::size_t>(
                                 received.delta.bytes.size(), credit_.bytes))};
  credit_.deltas -= cost.deltas;
  credit_.bytes -= cost.bytes;
  in_inbox_.deltas += cost.deltas;
  in_inbox_.bytes += cost.bytes;
  inbox_.deltas.push_back(std::move(received));
  attempt_.first_came();
}

void ReplicaStream::Core::end(Result<void> how) {
  if (std::exchange(ended_, true)) return;
  attempt_.ended(how);
  inbox_.end = std::move(how);
  upstream_ = {};
}

void ReplicaStream::Core::wake() {
  if (reader_ != nullptr && (inbox_.end || !inbox_.deltas.empty())) reader_->notify();
}

void ReplicaStream::Core::grant_what_was_taken() {
  if (!upstream_.grant) return;
  if (taken_.deltas * 2 < whole_.deltas && taken_.bytes * 2 < whole_.bytes) return;
  const StreamCredit more = std::exchange(taken_, {});
  credit_.deltas += more.deltas;
  credit_.bytes += more.bytes;
  upstream_.grant(more);
}

Arrival ReplicaStream::Core::take() {
  grant_what_was_taken();
  const StreamCredit cost = std::exchange(in_inbox_, {});
  taken_.deltas += cost.deltas;
  taken_.bytes += cost.bytes;
  return std::exchange(inbox_, {});
}

void ReplicaStream::Core::abandon() {
  reader_ = nullptr;
  if (std::exchange(ended_, true)) return;
  const Upstream upstream = std::exchange(upstream_, {});
  if (upstream.cancel) upstream.cancel();
  attempt_.ended(fail(Code::kCancelled, "nobody reads it any more"));
}

ReplicaStream::ReplicaStream(std::shared_ptr<Core> core) noexcept : core_(std::move(core)) {}

ReplicaStream::~ReplicaStream() {
  if (core_) core_->abandon();
}

ReplicaStream::ReplicaStream(ReplicaStream&&) noexcept = default;

ReplicaStream& ReplicaStream::operator=(ReplicaStream&& other) noexcept {
  if (this == &other) return *this;
  if (core_) core_->abandon();
  core_ = std::move(other.core_);
  return *this;
}

Arrival ReplicaStream::take() { return core_->take(); }

}  // namespace sluice
