#include "gateway/replica_table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/code_name.h"
#include "base/concat.h"
#include "base/log.h"

namespace sluice {
namespace {

// How much the newest first token counts in the smoothed time.
constexpr double kTtftWeight = 0.2;

// Those that say something of the replica and not of the request.
bool is_failure(Code code) noexcept {
  return code == Code::kUnavailable || code == Code::kInternal;
}

std::string called(const ReplicaFacts& facts) {
  const std::string address = facts.labels.empty() ? std::string() : facts.labels.back();
  const bool enough = facts.name.ends_with(address);
  return enough ? concat("replica ", facts.name)
                : concat("replica ", facts.name, " (", address, ")");
}

}  // namespace

ReplicaTable::ReplicaTable(PoolPolicy policy, const GatewayLimits& limits, Clock& clock,
                           Metrics& metrics)
    : policy_(policy),
      eject_time_(limits.eject_time),
      clock_(clock),
      metrics_(metrics),
      retries_(metrics.counter("sluice_gateway_retries_total",
                               "Requests that went to another replica after one failed")),
      retries_refused_(metrics.counter("sluice_gateway_retries_refused_total",
                                       "Retries refused by --retry-budget-percent")),
      retry_budget_(limits.retry_budget_percent) {}

ReplicaSeries ReplicaTable::make_series(const std::string& label) {
  const Metrics::Labels labels = {{"replica", label}};
  return {.up = metrics_.gauge("sluice_gateway_replica_up", "Replicas that take requests", labels),
          .ejected = metrics_.gauge("sluice_gateway_replica_ejected",
                                    "Replicas left alone because their requests failed", labels),
          .in_flight = metrics_.gauge("sluice_gateway_replica_in_flight",
                                      "Requests under way at the replica", labels),
          .requests = metrics_.counter("sluice_gateway_replica_requests_total",
                                       "Requests sent to the replica", labels),
          .failures = metrics_.counter("sluice_gateway_replica_failures_total",
                                       "Requests that the replica failed", labels)};
}

ReplicaId ReplicaTable::add(ReplicaFacts facts, std::shared_ptr<const ReplicaEndpoint> endpoint,
                            const std::string& label) {
  ReplicaSeries series = make_series(label);
  const MutexLock lock(mutex_);
  facts.id = ReplicaId{++last_id_};
  entries_.push_back(std::make_unique<Entry>(Entry{.facts = std::move(facts),
                                                   .endpoint = std::move(endpoint),
                                                   .series = series,
                                                   .ejection = Ejection(eject_time_)}));
  return ReplicaId{last_id_};
}

void ReplicaTable::remove(ReplicaId replica) {
  const MutexLock lock(mutex_);
  Entry* const entry = find(replica);
  if (entry == nullptr) return;
  if (entry->counted_up) entry->series.up.add(-1);
  if (entry->counted_ejected) entry->series.ejected.add(-1);
  entry->series.in_flight.add(-static_cast<double>(entry->in_flight));
  std::erase_if(entries_, [&](const auto& one) { return one.get() == entry; });
}

ReplicaTable::Entry* ReplicaTable::find(ReplicaId replica) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const auto& one) { return one->facts.id == replica; });
  return found == entries_.end() ? nullptr : found->get();
}

const ReplicaTable::Entry* ReplicaTable::find(ReplicaId replica) const {
  return const_cast<ReplicaTable*>(this)->find(replica);
}

// Brings the gauges to what the entry says, and tells the log what is new in it: once for each
// change, never for each request.
void ReplicaTable::show(Entry& entry, const NotServing& how) {
  const bool ejected = entry.ejection.standing(clock_.now()) != Standing::kGood;
  if (entry.healthy() != entry.counted_up) {
    entry.counted_up = entry.healthy();
    entry.series.up.add(entry.counted_up ? 1 : -1);
    shown_.notify_all();
    tell_change(entry, how);
  } else if (!entry.told && !how.why.empty()) {
    entry.told = true;
    log(how.planned ? LogLevel::kInfo : LogLevel::kWarning, "pool",
        concat(called(entry.facts), " can't be used yet: ", how.why));
  }
  if (ejected != entry.counted_ejected) {
    entry.counted_ejected = ejected;
    entry.series.ejected.add(ejected ? 1 : -1);
    if (!ejected) log_info("pool", concat(called(entry.facts), " answers again"));
  }
}

void ReplicaTable::tell_change(Entry& entry, const NotServing& how) {
  if (entry.counted_up) {
    log_info("pool", concat(called(entry.facts), " takes requests"));
  } else {
    const bool planned = how.planned || entry.load.draining;
    log(planned ? LogLevel::kInfo : LogLevel::kWarning, "pool",
        concat(called(entry.facts),
               " takes no requests any more: ", entry.load.draining ? "it drains" : how.why));
  }
  entry.told = true;
}

std::shared_ptr<const ReplicaEndpoint> ReplicaTable::endpoint(ReplicaId replica) const {
  const MutexLock lock(mutex_);
  const Entry* const entry = find(replica);
  return entry == nullptr ? nullptr : entry->endpoint;
}

bool ReplicaTable::attach(ReplicaId replica) const {
  const MutexLock lock(mutex_);
  const Entry* const entry = find(replica);
  return entry != nullptr && entry->attach;
}

void ReplicaTable::set_serving(ReplicaId replica) {
  const MutexLock lock(mutex_);
  Entry* const entry = find(replica);
  if (entry == nullptr) return;
  entry->serving = true;
  show(*entry);
}

void ReplicaTable::set_not_serving(ReplicaId replica, const NotServing& how) {
  const MutexLock lock(mutex_);
  Entry* const entry = find(replica);
  if (entry == nullptr) return;
  entry->serving = false;
  // What it said last is of the connection that is gone.
  entry->load = {};
  show(*entry, how);
}

void ReplicaTable::set_description(ReplicaId replica, ReplicaDescription description) {
  const MutexLock lock(mutex_);
  Entry* const entry = find(replica);
  if (entry == nullptr) return;
  entry->facts.models = std::move(description.models);
  entry->attach = description.attach;
  show(*entry);
}

void ReplicaTable::set_load(ReplicaId replica, const Load& load) {
  const MutexLock lock(mutex_);
  Entry* const entry = find(replica);
  if (entry == nullptr) return;
  const bool changed = entry->load.draining != load.draining;
  entry->load = load;
  if (changed) show(*entry);
}

void ReplicaTable::set_no_attach(ReplicaId replica) {
  const MutexLock lock(mutex_);
  if (Entry* const entry = find(replica)) entry->attach = false;
}

void ReplicaTable::began(ReplicaId replica) {
  const MutexLock lock(mutex_);
  Entry* const entry = find(replica);
  if (entry == nullptr) return;
  ++entry->in_flight;
  entry->series.in_flight.add(1);
  entry->series.requests.add();
}

void ReplicaTable::first_came(ReplicaId replica, Duration after) {
  const MutexLock lock(mutex_);
  Entry* const entry = find(replica);
  if (entry == nullptr) return;
  const Duration before = entry->ttft.value_or(after);
  entry->ttft = before + std::chrono::duration_cast<Duration>((after - before) * kTtftWeight);
  entry->ejection.succeeded();
  show(*entry);
}

void ReplicaTable::ended(ReplicaId replica, const Result<void>& how) {
  const MutexLock lock(mutex_);
  Entry* const entry = find(replica);
  if (entry == nullptr) return;
  --entry->in_flight;
  entry->series.in_flight.add(-1);
  if (how) {
    entry->ejection.succeeded();
  } else if (is_failure(how.error().code)) {
    entry->series.failures.add();
    const bool ejects = entry->ejection.failed(clock_.now());
    if (ejects && !entry->counted_ejected) {
      log_warning("pool",
                  concat(called(entry->facts), " is left alone for ", eject_time_.count(),
                         " ms (--eject-time-ms) and then tried: ", Ejection::kFailuresToEject,
                         " requests on end failed, the last with ", code_name(how.error().code)));
    }
  }
  show(*entry);
}

Result<ReplicaPool::Choice> ReplicaTable::choose(const Routing& routing,
                                                 std::span<const ReplicaId> tried) {
  const MutexLock lock(mutex_);
  const TimePoint now = clock_.now();
  candidates_.clear();
  for (const auto& entry : entries_) {
    candidates_.push_back({.facts = &entry->facts,
                           .healthy = entry->healthy(),
                           .standing = entry->ejection.standing(now),
                           .in_flight = entry->in_flight,
                           .load = entry->load,
                           .ttft = entry->ttft});
  }
  auto chosen = choose_replica(candidates_, routing, policy_, tried, turn_++);
  if (!chosen) return tl::unexpected(std::move(chosen.error()));
  if (tried.empty()) {
    retry_budget_.count_request(now);
  } else if (retry_budget_.take(now)) {
    retries_.add();
  } else {
    retries_refused_.add();
    return fail(Code::kResourceExhausted,
                "too many requests are being tried again (--retry-budget-percent)");
  }
  Entry& entry = *entries_[chosen->candidate];
  if (candidates_[chosen->candidate].standing == Standing::kHalfOpen) entry.ejection.tried(now);
  return ReplicaPool::Choice{.replica = entry.facts.id,
                             .name = entry.facts.name,
                             .model = std::move(chosen->model),
                             .reason = chosen->reason};
}

std::vector<ModelEntry> ReplicaTable::models() const {
  std::map<std::string, ModelEntry> by_name;
  const MutexLock lock(mutex_);
  for (const auto& entry : entries_) {
    if (!entry->healthy()) continue;
    for (const ModelEntry& model : *entry->facts.models) by_name.emplace(model.name, model);
  }
  std::vector<ModelEntry> models;
  models.reserve(by_name.size());
  for (auto& [name, model] : by_name) models.push_back(std::move(model));
  return models;
}

bool ReplicaTable::any_healthy() const noexcept {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& entry) { return entry->healthy(); });
}

bool ReplicaTable::ready() const noexcept {
  const MutexLock lock(mutex_);
  return any_healthy();
}

bool ReplicaTable::wait_ready(TimePoint until) noexcept {
  const MutexLock lock(mutex_);
  while (!any_healthy() && clock_.now() < until) clock_.wait_until(shown_, mutex_, until);
  return any_healthy();
}

Attempt::Attempt(ReplicaTable& table, ReplicaId replica)
    : table_(&table), replica_(replica), began_at_(table.now()) {
  table.began(replica);
}

Attempt::Attempt(Attempt&& other) noexcept
    : table_(std::exchange(other.table_, nullptr)),
      replica_(other.replica_),
      began_at_(other.began_at_),
      came_(other.came_) {}

Attempt::~Attempt() { ended(fail(Code::kCancelled, "dropped")); }

void Attempt::first_came() {
  if (table_ == nullptr || std::exchange(came_, true)) return;
  table_->first_came(replica_, table_->now() - began_at_);
}

void Attempt::ended(const Result<void>& how) {
  if (ReplicaTable* const table = std::exchange(table_, nullptr)) table->ended(replica_, how);
}

}  // namespace sluice
