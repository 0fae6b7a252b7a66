// Services: inference.LLM and inference.Replica for a gRPC server's callback API. Every method asks
// for a key where keys are required. Bounded as each call's own header says; Describe and Drain
// answer at once. Thread: gRPC's.
#pragma once

#include <memory>

namespace grpc {
class Service;
}

namespace sluice {

struct ReplicaContext;

class Services {
 public:
  // `replica` outlives the services, and these the server.
  explicit Services(const ReplicaContext& replica);
  ~Services();
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  [[nodiscard]] grpc::Service& llm() noexcept;
  [[nodiscard]] grpc::Service& replica() noexcept;

  // Cuts Generate calls whose client has taken nothing for twice --park-limit-ms: within the first
  // the request ends, in the second the client may still hear of it.
  void cut_stuck_calls() noexcept;

 private:
  class Llm;
  class Replica;
  std::unique_ptr<Llm> llm_;
  std::unique_ptr<Replica> replica_;
};

}  // namespace sluice
