// ReplicaTable: all that this gateway knows of its replicas, in one place behind one mutex: told by
// their health watches, by the step streams (load), and by how requests end (Attempt). Bounded by
// the replicas: those that are gone are forgotten. Thread: any; nothing here waits or calls out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "contract/generation.h"
#include "gateway/ejection.h"
#include "gateway/gateway_limits.h"
#include "gateway/replica_choice.h"
#include "gateway/replica_pool.h"
#include "gateway/retry_budget.h"

namespace sluice {

class ReplicaEndpoint;

// What Describe says, as far as a gateway needs it.
struct ReplicaDescription {
  std::vector<ModelEntry> models;  // empty: it has no Describe and takes any model
  bool attach = false;
};

// Series that the table keeps. One for each replica that was configured: one name with several
// addresses shares its series.
struct ReplicaSeries {
  Gauge up;
  Gauge ejected;
  Gauge in_flight;
  Counter requests;
  Counter failures;
};

// Why a replica does not serve, for the log; `planned`: nothing is wrong with it.
struct NotServing {
  std::string why;
  bool planned = false;
};

class ReplicaTable {
 public:
  ReplicaTable(PoolPolicy policy, const GatewayLimits& limits, Clock& clock, Metrics& metrics);

  // `label`: the replica's name in metrics.
  [[nodiscard]] ReplicaId add(ReplicaFacts facts, std::shared_ptr<const ReplicaEndpoint> endpoint,
                              const std::string& label) EXCLUDES(mutex_);
  void remove(ReplicaId replica) EXCLUDES(mutex_);

  // Of one that is gone: nothing, in all of these.
  [[nodiscard]] std::shared_ptr<const ReplicaEndpoint> endpoint(ReplicaId replica) const
      EXCLUDES(mutex_);
  [[nodiscard]] bool attach(ReplicaId replica) const EXCLUDES(mutex_);

  // From its health.
  void set_serving(ReplicaId replica) EXCLUDES(mutex_);
  void set_not_serving(ReplicaId replica, const NotServing& how) EXCLUDES(mutex_);
  void set_description(ReplicaId replica, ReplicaDescription description) EXCLUDES(mutex_);
  void set_load(ReplicaId replica, const Load& load) EXCLUDES(mutex_);
  void set_no_attach(ReplicaId replica) EXCLUDES(mutex_);

  // From its requests (Attempt calls these).
  void began(ReplicaId replica) EXCLUDES(mutex_);
  void first_came(ReplicaId replica, Duration after) EXCLUDES(mutex_);
  void ended(ReplicaId replica, const Result<void>& how) EXCLUDES(mutex_);

  // As ReplicaPool's.
  [[nodiscard]] Result<ReplicaPool::Choice> choose(const Routing& routing,
                                                   std::span<const ReplicaId> tried)
      EXCLUDES(mutex_);
  [[nodiscard]] std::vector<ModelEntry> models() const EXCLUDES(mutex_);
  [[nodiscard]] bool ready() const noexcept EXCLUDES(mutex_);
  bool wait_ready(TimePoint until) noexcept EXCLUDES(mutex_);

  [[nodiscard]] TimePoint now() const noexcept { return clock_.now(); }

 private:
  struct Entry {
    ReplicaFacts facts;
    std::shared_ptr<const ReplicaEndpoint> endpoint;
    ReplicaSeries series;
    Ejection ejection;
    bool serving = false;
    bool counted_up = false;
    bool counted_ejected = false;
    bool told = false;  // the log has a line of whether it is up
    bool attach = false;
    std::uint32_t in_flight = 0;
    Load load;
    std::optional<Duration> ttft;

    [[nodiscard]] bool healthy() const noexcept {
      return serving && facts.models.has_value() && !load.draining;
    }
  };

  [[nodiscard]] ReplicaSeries make_series(const std::string& label);
  [[nodiscard]] Entry* find(ReplicaId replica) REQUIRES(mutex_);
  [[nodiscard]] const Entry* find(ReplicaId replica) const REQUIRES(mutex_);
  void show(Entry& entry, const NotServing& how = {}) REQUIRES(mutex_);
  static void tell_change(Entry& entry, const NotServing& how);

  const PoolPolicy policy_;
  const std::chrono::milliseconds eject_time_;
  Clock& clock_;
  Metrics& metrics_;
  Counter retries_;
  Counter retries_refused_;

  [[nodiscard]] bool any_healthy() const noexcept REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar shown_;
  std::vector<std::unique_ptr<Entry>> entries_ GUARDED_BY(mutex_);
  std::vector<Candidate> candidates_ GUARDED_BY(mutex_);
  RetryBudget retry_budget_ GUARDED_BY(mutex_);
  std::uint64_t turn_ GUARDED_BY(mutex_) = 0;
  std::uint32_t last_id_ GUARDED_BY(mutex_) = 0;
};

// One request at one replica, from its sending to its end. Dropped before, it was cancelled, which
// says nothing of the replica. Thread: one at a time.
class Attempt {
 public:
  Attempt(ReplicaTable& table, ReplicaId replica);
  ~Attempt();
  Attempt(Attempt&& other) noexcept;
  Attempt& operator=(Attempt&&) = delete;

  void first_came();  // further calls do nothing
  void ended(const Result<void>& how);

 private:
  ReplicaTable* table_;  // null once it ended
  ReplicaId replica_;
  TimePoint began_at_;
  bool came_ = false;
};

}  // namespace sluice
