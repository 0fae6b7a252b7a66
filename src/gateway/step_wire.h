// StepWire: the messages of one Attach call, on a connection of its own (one that failed before
// would make it wait). Up: starts, cancels and credits; what is added in one
// turn of the loop leaves in one message, one in flight. Down: what came since the last time is
// handed over by one post. Reading never stops: credit bounds what comes. Bounded, up: by the
// running requests; a message is closed at kMessageBytes. Thread: its I/O thread, where the events
// come, too; gRPC's threads are inside.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/gate.h"
#include "gateway/asio.h"
#include "gateway/replica_endpoint.h"
#include "gateway/stream_core.h"

namespace inference {
class Start;
class StepBatch;
}  // namespace inference

namespace sluice {

class StepWire {
 public:
  struct Events {
    std::function<void(inference::StepBatch&)> came;  // each message, in order
    std::function<void()> all_came;                   // after the last that is here
    // The call is over. `attach`: false if the replica has no step stream.
    std::function<void(bool attach)> over;
  };

  // `pass` goes back when gRPC has let go of the call.
  StepWire(asio::io_context& io, const ReplicaEndpoint& endpoint, Gate::Pass pass, Events events);
  ~StepWire() { close(); }
  StepWire(const StepWire&) = delete;
  StepWire& operator=(const StepWire&) = delete;

  void start(inference::Start&& start);
  void cancel(std::uint64_t id);
  void grant(std::uint64_t id, StreamCredit credit);
  // Cancels the call. No more events.
  void close();
  // The call is over, even if the event has not come yet: what would be sent now is not.
  [[nodiscard]] bool ended() const;

 private:
  class Reactor;
  std::shared_ptr<Reactor> reactor_;
};

}  // namespace sluice
