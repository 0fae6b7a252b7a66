// Generate as a call of its own: for requests too large for the step stream, and for replicas
// without one. Messages are read one at a time and only while the stream's reader has credit left,
// so that a reader that stops fills the call's window, which is small, and then the replica waits.
// Bounded by the credit and one message. Thread: its I/O thread; gRPC's threads come in by posts.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_set>

#include "base/gate.h"
#include "gateway/asio.h"
#include "gateway/replica_channels.h"
#include "gateway/replica_links.h"
#include "gateway/replica_stream.h"

namespace grpc {
class Status;
}
namespace inference {
class GenerateRequest;
}

namespace sluice {

// The calls of one I/O thread.
class ReplicaCalls {
 public:
  // `calls` is empty once gRPC has let go of all of them.
  ReplicaCalls(asio::io_context& io, Gate& calls) : io_(io), calls_(calls) {}
  ~ReplicaCalls() { close(); }
  ReplicaCalls(const ReplicaCalls&) = delete;
  ReplicaCalls& operator=(const ReplicaCalls&) = delete;

  void start(std::shared_ptr<ReplicaStream::Core> core, inference::GenerateRequest&& request,
             ReplicaChannels& channels, const CallContext& context);
  // Ends what runs with kCancelled, and takes nothing any more.
  void close();

 private:
  class Call;

  asio::io_context& io_;
  Gate& calls_;
  std::unordered_set<std::shared_ptr<Call>> running_;
  bool closed_ = false;
};

// Metadata and deadline, as every call to a replica has them.
void prepare_call(grpc::ClientContext& call, const ReplicaEndpoint& endpoint,
                  const CallContext& context);

// Whether it may stand in metadata and in protobuf's text: printable ASCII.
[[nodiscard]] bool is_plain(std::string_view text) noexcept;

// What a call's status means, with the time to try again that its trailing metadata may hold.
[[nodiscard]] Result<void> how_it_ended(const grpc::Status& status,
                                        const grpc::ClientContext& call);

}  // namespace sluice
