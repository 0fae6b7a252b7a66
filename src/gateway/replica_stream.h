// ReplicaStream: one generation at a replica, as whoever answers the client reads it. Both ways to
// a replica (the step stream, a Generate call of its own) end in one of these. Pull: take() grants
// the replica as much again as what it gave before, which the client has by then, so that a client
// that doesn't read stops the sequence in the replica. Bounded by --credit-deltas and
// --credit-bytes. Dropping it unfinished cancels the generation. Thread: its I/O thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "contract/generation.h"

namespace sluice {

// All that has come since the last time, in order.
struct Arrival {
  std::vector<ReceivedDelta> deltas;
  // Set once, with the last of the deltas: how the generation ended.
  std::optional<Result<void>> end;
};

class ReplicaStream {
 public:
  class Core;  // the receiving half, fed by step_client.cpp or replica_call.cpp

  explicit ReplicaStream(std::shared_ptr<Core> core) noexcept;
  ~ReplicaStream();
  ReplicaStream(ReplicaStream&&) noexcept;
  ReplicaStream& operator=(ReplicaStream&&) noexcept;

  // All that has come since the last time; nothing, perhaps. What comes later notifies the WakeUp
  // that the stream was opened with. Not after an arrival with `end`.
  [[nodiscard]] Arrival take();

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace sluice
