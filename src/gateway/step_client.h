// StepClient: the step stream of one I/O thread to one replica: which Attach call takes new
// requests. One that breaks is made anew, at once and then with growing pauses, or when a request
// wants it. One that is old gives way to a new one and stays until its last request has ended, as
// servers close connections of a certain age. Bounded: two calls, seldom more. Thread: its I/O
// thread.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "gateway/asio.h"
#include "gateway/replica_endpoint.h"
#include "gateway/replica_stream.h"
#include "gateway/replica_table.h"
#include "gateway/step_call.h"
// behind asio.h
#include <boost/asio/steady_timer.hpp>

namespace sluice {

class StepClient : public std::enable_shared_from_this<StepClient> {
 public:
  StepClient(const StepCall::Surroundings& around, ReplicaId replica,
             std::shared_ptr<const ReplicaEndpoint> endpoint);

  // As StepCall::start.
  void start(std::shared_ptr<ReplicaStream::Core> core, inference::Start&& start);
  // Ends what runs with kCancelled, and takes nothing any more.
  void close();
  [[nodiscard]] bool idle() const;

 private:
  void attach();
  void over(const StepCall* call);
  void attach_later();

  const StepCall::Surroundings around_;
  const ReplicaId replica_;
  const std::shared_ptr<const ReplicaEndpoint> endpoint_;
  std::unique_ptr<StepCall> call_;  // takes new requests; null while there is none
  std::vector<std::unique_ptr<StepCall>> retiring_;
  asio::steady_timer timer_;
  std::chrono::milliseconds pause_{0};
  bool closed_ = false;
};

}  // namespace sluice
