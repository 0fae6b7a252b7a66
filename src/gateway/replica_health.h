// ReplicaHealth: watches one replica and tells the table: grpc.health.v1 Watch (is it serving),
// Describe (what it serves; after each connection anew), WatchLoad. A watch that ends is begun
// again, at once and then with growing pauses; while health's is broken the replica is not up. A
// server without health counts as up while the connection is. Bounded: three calls. Thread: any but
// gRPC's; its callbacks come in those.
#pragma once

#include <memory>

#include "base/gate.h"
#include "gateway/replica_endpoint.h"
#include "gateway/replica_table.h"

namespace sluice {

class ReplicaHealth {
 public:
  ReplicaHealth(ReplicaTable& table, Clock& clock, ReplicaId replica,
                std::shared_ptr<const ReplicaEndpoint> endpoint);
  ~ReplicaHealth();  // cancels, and waits until gRPC has let go
  ReplicaHealth(const ReplicaHealth&) = delete;
  ReplicaHealth& operator=(const ReplicaHealth&) = delete;

 private:
  class Watch;
  Clock& clock_;
  Gate calls_;
  std::shared_ptr<Watch> watch_;  // has the channel: destroyed here, not in gRPC's threads
};

}  // namespace sluice
