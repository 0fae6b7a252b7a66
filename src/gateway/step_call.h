// StepCall: the requests of one Attach call, from their starts to their statuses, each with the
// stream that reads it. A step's readers are woken once, when all that came is with its stream. The
// call's end ends all of them. Bounded: each request by its credit; what comes beyond it ends that
// request. Thread: its I/O thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/gate.h"
#include "base/metrics.h"
#include "contract/wire_client.h"
#include "gateway/asio.h"
#include "gateway/replica_endpoint.h"
#include "gateway/replica_stream.h"
#include "gateway/replica_table.h"
#include "gateway/step_wire.h"

namespace inference {
class StepItem;
}

namespace sluice {

struct LinkMetrics {
  explicit LinkMetrics(Metrics& metrics);

  Counter over_steps;  // requests, by the way that they went
  Counter over_calls;
  Gauge streams;
  Counter broken;
  Counter messages;
  Counter credit_stalls;
};

class StepCall {
 public:
  struct Surroundings {
    asio::io_context& io;
    ReplicaTable& table;
    LinkMetrics& metrics;
    Gate& calls;  // empty once gRPC has let go of all calls
  };

  // `over`: it broke, or it was retired and its last request has ended; not after close(). It may
  // destroy this.
  StepCall(const Surroundings& around, ReplicaId replica, const ReplicaEndpoint& endpoint,
           Gate::Pass pass, std::function<void()> over);
  ~StepCall();
  StepCall(const StepCall&) = delete;
  StepCall& operator=(const StepCall&) = delete;

  // Sends `start` with its credit and an id of its own; what comes back goes to `core`.
  void start(std::shared_ptr<ReplicaStream::Core> core, inference::Start&& start);
  // No more starts: it is over when nothing runs any more.
  void retire();

  [[nodiscard]] bool idle() const noexcept { return running_.empty(); }
  [[nodiscard]] Duration age() const noexcept { return table_.now() - opened_at_; }
  // It broke, and `over` is still to come: a request started now would be lost.
  [[nodiscard]] bool ended() const { return wire_.ended(); }
  // Whether anything has come on it.
  [[nodiscard]] bool served() const noexcept { return served_; }

 private:
  using Cores = std::vector<std::shared_ptr<ReplicaStream::Core>>;
  struct Running {
    std::shared_ptr<ReplicaStream::Core> core;
    ResponseDecoder decoder;
  };

  [[nodiscard]] StepWire::Events events();
  void take(inference::StepBatch& batch);
  void take(inference::StepItem& item);
  [[nodiscard]] Result<void> pass_on(Running& running, inference::StepItem& item);
  void cancel(std::uint64_t id);
  void broke(bool attach);
  [[nodiscard]] Cores end_all(const Error& error);  // those that ran, not woken yet
  void wake_touched();
  void leave_if_done();

  ReplicaTable& table_;
  LinkMetrics& metrics_;
  asio::io_context& io_;
  const ReplicaId replica_;
  std::function<void()> over_;
  const TimePoint opened_at_;
  std::unordered_map<std::uint64_t, Running> running_;
  Cores touched_;
  std::uint64_t last_id_ = 0;
  bool served_ = false;
  bool retired_ = false;
  bool over_told_ = false;
  std::shared_ptr<StepCall*> life_;  // what is posted for later finds null when this is gone
  StepWire wire_;                    // last: it begins at once
};

}  // namespace sluice
