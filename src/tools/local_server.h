// LocalServer: the default model served inside this process, for a chat that found no server. Its
// calls come over gRPC's in-process channel; its port is a free one on loopback that nobody is told
// of. Bounded as a replica with a few slots. The model is the file that SLUICE_MODEL names in the
// environment (./run sets it). Thread: any.
#pragma once

#include <memory>

#include "base/error.h"

namespace grpc {
class Channel;
}

namespace sluice {

class Replica;

class LocalServer {
 public:
  // Loads the model and waits until it answers: about a second. Errors name the file, or what to do
  // instead.
  [[nodiscard]] static Result<std::unique_ptr<LocalServer>> start();
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  [[nodiscard]] std::shared_ptr<grpc::Channel> channel();

 private:
  explicit LocalServer(std::unique_ptr<Replica> replica) noexcept;
  std::unique_ptr<Replica> replica_;
};

}  // namespace sluice
