// ReplicaHealth: watches one replica and tells the table: grpc.health.v1 Watch (is it serving),
// Describe (what it serves; after each connection anew), WatchLoad. A watch that ends is begun
// again, at once and then with growing pauses; while health's is broken the replica is not up. A
// server without health counts as up while the connection is. Bounded: three calls. Thread: any;
// its callbacks come in gRPC's threads.
#pragma once

#include <memory>

#include "base/gate.h"
#include "gateway/replica_endpoint.h"
#include "gateway/replica_table.h"

namespace sluice {

class ReplicaHealth {
 public:
  // `calls` is empty once gRPC has let go of all of its calls and alarms.
  ReplicaHealth(ReplicaTable& table, ReplicaId replica,
                std::shared_ptr<const ReplicaEndpoint> endpoint, Gate& calls);
  ~ReplicaHealth();  // cancels, and does not wait
  ReplicaHealth(const ReplicaHealth&) = delete;
  ReplicaHealth& operator=(const ReplicaHealth&) = delete;

 private:
  class Watch;
  std::shared_ptr<Watch> watch_;
};

}  // namespace sluice
