// Gateway: OpenAI's HTTP at the edge, gRPC to the replicas inside. Owns everything between the two,
// and is the only place where it is joined. Life: start() listens → begin_drain() → wait_drained().
// Bounded by GatewayOptions::limits, each part as its own header says. Thread: any; wait_drained
// and the destructor block.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/error.h"
#include "gateway/gateway_options.h"

namespace grpc {
class Channel;
}

namespace sluice {

class Gateway {
 public:
  // A replica in this process (`sluice up`), and what it takes as a key; null: none.
  struct Local {
    std::shared_ptr<grpc::Channel> channel;
    std::string key;
  };
  // Errors name the flag or file at fault.
  [[nodiscard]] static Result<std::unique_ptr<Gateway>> start(GatewayOptions options, Local local);
  // Cuts what is left.
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  // "HOST:PORT" with the port that was given or found; metrics: "off" without.
  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::string metrics_address() const;

  // Until a replica takes requests; a local one takes milliseconds to say so. False: the time came
  // first.
  bool wait_ready(std::chrono::milliseconds most) noexcept;

  // New requests get 503, running answers go on for --http-drain-grace-ms.
  void begin_drain() noexcept;
  // The grace is over now.
  void end_grace() noexcept;
  // Until a drain is over. False: the grace did not last for all answers.
  bool wait_drained() noexcept;

 private:
  class Parts;
  explicit Gateway(std::unique_ptr<Parts> parts) noexcept;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice
