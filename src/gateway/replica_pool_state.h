// ReplicaPool::State: the parts of a pool, joined in replica_pool.cpp; the links of the I/O threads
// share the table and the metrics. Thread: each part's own.
#pragma once

#include <memory>

#include "base/clock.h"
#include "gateway/replica_directory.h"
#include "gateway/replica_pool.h"
#include "gateway/replica_table.h"
#include "gateway/replica_threads.h"
#include "gateway/step_client.h"

namespace sluice {

struct ReplicaPool::State {
  State(const PoolOptions& options, ReplicaAccess access, std::vector<ReplicaSpec> specs,
        const GatewayLimits& limits, Metrics& metrics);

  ReplicaThreads threads;  // first: the others' calls end on them
  SystemClock clock;
  ReplicaTable table;
  LinkMetrics links;
  ReplicaDirectory directory;  // last: it is told to stop before the others go
};

}  // namespace sluice
