// ReplicaDirectory: which replicas there are. What was given as an address is there for good; names
// are resolved every --resolve-interval-ms, and their replicas come and go with the answers. An
// answer that fails changes nothing. Owns each replica's health watch. Bounded by what was given
// and what it resolves to. Thread: a resolver thread of its own, which the system's resolver may
// hold up, and its end with it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "gateway/replica_endpoint.h"
#include "gateway/replica_health.h"
#include "gateway/replica_spec.h"
#include "gateway/replica_table.h"

namespace sluice {

class ReplicaDirectory {
 public:
  // `access`: to those of `specs`; `local` may be null.
  ReplicaDirectory(ReplicaTable& table, Clock& clock, std::shared_ptr<const ReplicaAccess> access,
                   std::vector<ReplicaSpec> specs, std::shared_ptr<const ReplicaEndpoint> local,
                   std::chrono::milliseconds interval);
  ~ReplicaDirectory();
  ReplicaDirectory(const ReplicaDirectory&) = delete;
  ReplicaDirectory& operator=(const ReplicaDirectory&) = delete;

 private:
  struct Known {
    ReplicaId id{};
    std::unique_ptr<ReplicaHealth> health;
  };
  struct Place {
    ReplicaSpec spec;
    std::map<std::string, Known> known;  // by address
    bool failing = false;
  };

  void run() noexcept EXCLUDES(mutex_);
  [[nodiscard]] bool wait() EXCLUDES(mutex_);
  void resolve_again(Place& place);
  void add(Place& place, const std::string& address);
  [[nodiscard]] Known watch(ReplicaFacts facts, std::shared_ptr<const ReplicaEndpoint> endpoint,
                            const std::string& label);

  ReplicaTable& table_;
  Clock& clock_;
  const std::shared_ptr<const ReplicaAccess> access_;
  const std::chrono::milliseconds interval_;
  Known local_;
  std::vector<Place> places_;  // the resolver thread's, once that runs
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread resolver_;
};

}  // namespace sluice
