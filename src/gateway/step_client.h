// StepClient: the step stream of one I/O thread to one replica. Requests start on the current
// Attach call; what they start, cancel and grant in one turn of the loop leaves in one message.
// What the replica made in one step is taken from gRPC's thread to this one by one post, and wakes
// each of its readers. A call that breaks ends its requests with kUnavailable and is made anew, at
// once and then with growing pauses. A call gives way to a new one before its connection grows too
// old. Bounded: per request by its credit; unsent starts by the running requests. Thread: its I/O
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/gate.h"
#include "base/metrics.h"
#include "gateway/asio.h"
#include "gateway/replica_endpoint.h"
#include "gateway/replica_stream.h"
#include "gateway/replica_table.h"
// behind asio.h
#include <boost/asio/steady_timer.hpp>

namespace inference {
class Start;
}

namespace sluice {

struct StepMetrics {
  explicit StepMetrics(Metrics& metrics);

  Gauge streams;
  Counter broken;
  Counter messages;
  Counter credit_stalls;
};

class StepClient : public std::enable_shared_from_this<StepClient> {
 public:
  struct Surroundings {
    asio::io_context& io;
    ReplicaTable& table;
    StepMetrics& metrics;
    Gate& calls;  // empty once gRPC has let go of all calls
  };

  StepClient(Surroundings around, ReplicaId replica,
             std::shared_ptr<const ReplicaEndpoint> endpoint);
  ~StepClient();

  // Sends `start` with its credit and an id of its own; what comes back goes to `core`.
  void start(std::shared_ptr<ReplicaStream::Core> core, inference::Start&& start);
  // Ends what runs with kCancelled, and takes nothing any more.
  void close();
  [[nodiscard]] bool idle() const;

 private:
  class Call;

  void attach();
  void forget(const std::shared_ptr<Call>& call, bool had_served);
  void attach_later();

  Surroundings around_;
  const ReplicaId replica_;
  const std::shared_ptr<const ReplicaEndpoint> endpoint_;
  std::shared_ptr<grpc::Channel> channel_;
  std::shared_ptr<Call> call_;                   // takes new requests; null while there is none
  std::vector<std::shared_ptr<Call>> retiring_;  // run to their requests' ends
  asio::steady_timer timer_;
  std::chrono::milliseconds pause_{0};
  bool closed_ = false;
};

}  // namespace sluice
