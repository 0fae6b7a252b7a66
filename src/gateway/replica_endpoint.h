// ReplicaEndpoint: where one replica is and how one gets in: its address, TLS, and the gateway's
// key. Each open() is a connection of its own, so that none of its uses waits behind another; the
// replica in this process has the one channel that it came with. Never logs the key. Thread: any.
// A call's context holds its channel, so gRPC's threads hand it back before they say that the call
// is over: at the pool's end none of them may have the last channel (replica_threads.h says why).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "gateway/replica_pool.h"

namespace grpc {
class Channel;
class ChannelCredentials;
class ClientContext;
}  // namespace grpc

namespace sluice {

enum class ChannelUse {
  kSteps,  // the step stream: credit bounds it
  kCalls,  // Generate calls: gRPC's window is the bound, so that it is small
  kWatch,  // health, load, and other small things
};

// What all replicas of a pool have in common.
struct ReplicaAccess {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  std::string server_name;    // expected in the certificate; empty: the address's host
  std::string authorization;  // metadata; empty: none

  // Errors name the file and its flag.
  [[nodiscard]] static Result<ReplicaAccess> make(const ReplicaTls& tls,
                                                  const std::string& api_key);
  // Within this process.
  [[nodiscard]] static ReplicaAccess local(const std::string& api_key);
};

class ReplicaEndpoint {
 public:
  // `target`: HOST:PORT to connect to; `host`: what it was called before it was resolved.
  ReplicaEndpoint(std::shared_ptr<const ReplicaAccess> access, std::string target,
                  std::string host);
  ReplicaEndpoint(std::shared_ptr<const ReplicaAccess> access,
                  std::shared_ptr<grpc::Channel> local);

  [[nodiscard]] std::shared_ptr<grpc::Channel> open(ChannelUse use) const;
  void authorize(grpc::ClientContext& call) const;
  [[nodiscard]] bool is_local() const noexcept { return local_ != nullptr; }

 private:
  std::shared_ptr<const ReplicaAccess> access_;
  std::string target_;
  std::string host_;
  std::shared_ptr<grpc::Channel> local_;
};

}  // namespace sluice
