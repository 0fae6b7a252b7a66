// Replica: one engine behind gRPC. Owns everything between the port and the model, and is the only
// place where it is joined.
// Life: start() listens (health: NOT_SERVING) → warm_up() shows that a token comes out (SERVING) →
// begin_drain() → wait() returns.
// Bounded by ReplicaOptions::limits, each part as its own header says.
// Thread: any; wait and warm_up block.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "contract/limits.h"
#include "replica/credentials.h"
#include "replica/server_options.h"

namespace grpc {
class Channel;
}

namespace sluice {

class Engine;

enum class Switch {
  kOff,
  kOn,
  kAuto,  // on, unless keys are asked for
};

struct ReplicaOptions {
  Limits limits;
  TransportOptions transport;
  std::string listen = "127.0.0.1:50051";
  std::string listen_flag = "--listen";           // what errors call it
  std::string metrics_listen = "127.0.0.1:9090";  // "off": none
  TlsFiles tls;
  std::string api_keys;  // file; empty: nobody needs a key
  Switch reflection = Switch::kAuto;
  Switch channelz = Switch::kAuto;
};

class Replica {
 public:
  // Proves the transport's options, then listens. Errors name the flag or file at fault.
  [[nodiscard]] static Result<std::unique_ptr<Replica>> start(std::unique_ptr<Engine> engine,
                                                              ReplicaOptions options);
  // Drains without grace.
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // One token through gRPC; from then on health says SERVING. `with_token` false: it says so at
  // once.
  [[nodiscard]] Result<void> warm_up(bool with_token = true);

  // "HOST:PORT" with the port that was given or found; metrics: "off" without.
  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::string metrics_address() const;

  // Health says NOT_SERVING, new requests get UNAVAILABLE, running ones may go on for the grace
  // (absent: --drain-grace-ms). A further call can only shorten the grace.
  // Returns how many requests still run.
  std::uint32_t begin_drain(std::optional<std::chrono::milliseconds> grace) noexcept;
  [[nodiscard]] bool draining() const noexcept;

  // Until a drain is over: no request is left. The server ends with this object; whoever calls over
  // in_process_channel() must have let go of it by then, for a call that is made there on a server
  // that has ended crashes gRPC 1.51.
  void wait() noexcept;

  // To the same server without a socket.
  [[nodiscard]] std::shared_ptr<grpc::Channel> in_process_channel();
  // What to send as `authorization: Bearer …` there.
  [[nodiscard]] const std::string& own_key() const noexcept;

 private:
  class Parts;
  explicit Replica(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice
