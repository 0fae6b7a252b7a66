// Embed and CountTokens as awaitables. A task that is cancelled cancels its call at once. Bounded
// by one answer each. Thread: its I/O thread; gRPC's threads come in by posts.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/gate.h"
#include "gateway/asio.h"
#include "gateway/replica_channels.h"
#include "gateway/replica_links.h"
#include "gateway/replica_table.h"

namespace sluice {

// The calls of one I/O thread.
class ReplicaUnary {
 public:
  // `calls` is empty once gRPC has let go of all of them.
  ReplicaUnary(asio::io_context& io, Gate& calls) : io_(io), calls_(calls) {}
  ~ReplicaUnary() { close(); }
  ReplicaUnary(const ReplicaUnary&) = delete;
  ReplicaUnary& operator=(const ReplicaUnary&) = delete;

  [[nodiscard]] Task<Result<EmbedAnswer>> embed(Attempt attempt, ReplicaChannels& channels,
                                                std::string model, std::vector<std::string> inputs,
                                                CallContext context);
  [[nodiscard]] Task<Result<TokenCount>> count_tokens(Attempt attempt, ReplicaChannels& channels,
                                                      std::string model, PromptSource prompt,
                                                      CallContext context);
  // Cancels what runs, and takes nothing any more.
  void close();

 private:
  template <typename Request, typename Response>
  struct Call;
  template <typename Request, typename Response, typename Method>
  Task<Result<void>> run(std::shared_ptr<Call<Request, Response>> call, Attempt attempt,
                         ReplicaChannels& channels, CallContext context, Method method);

  asio::io_context& io_;
  Gate& calls_;
  std::unordered_set<std::shared_ptr<grpc::ClientContext>> running_;
  bool closed_ = false;
};

}  // namespace sluice
