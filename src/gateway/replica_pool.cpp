#include "gateway/replica_pool.h"

#include <set>
#include <utility>

#include "base/concat.h"
#include "gateway/replica_pool_state.h"

namespace sluice {
namespace {

Result<std::vector<ReplicaSpec>> parse_all(const PoolOptions& options) {
  if (options.replicas.empty() && !options.local) return invalid("there is no --replica");
  std::vector<ReplicaSpec> specs;
  std::set<std::string> names;
  for (const std::string& text : options.replicas) {
    auto spec = parse_replica(text);
    if (!spec) return tl::unexpected(std::move(spec.error()));
    if (!names.insert(spec->name()).second)
      return invalid(concat("--replica: there are two named ", spec->name()));
    specs.push_back(std::move(*spec));
  }
  return specs;
}

std::shared_ptr<const ReplicaEndpoint> local_endpoint(const PoolOptions& options) {
  if (!options.local) return nullptr;
  return std::make_shared<const ReplicaEndpoint>(
      std::make_shared<const ReplicaAccess>(ReplicaAccess::local(options.local_key)),
      options.local);
}

}  // namespace

ReplicaPool::State::State(const PoolOptions& options, ReplicaAccess access,
                          std::vector<ReplicaSpec> specs, const GatewayLimits& limits,
                          Metrics& metrics)
    : table(options.policy, limits, clock, metrics),
      links(metrics),
      directory(table, clock, std::make_shared<const ReplicaAccess>(std::move(access)),
                std::move(specs), local_endpoint(options), limits.resolve_interval) {}

Result<std::unique_ptr<ReplicaPool>> ReplicaPool::start(const PoolOptions& options,
                                                        const GatewayLimits& limits,
                                                        Metrics& metrics) {
  auto specs = parse_all(options);
  if (!specs) return tl::unexpected(std::move(specs.error()));
  auto access = ReplicaAccess::make(options.tls, options.api_key);
  if (!access) return tl::unexpected(std::move(access.error()));
  auto state =
      std::make_unique<State>(options, std::move(*access), std::move(*specs), limits, metrics);
  return std::unique_ptr<ReplicaPool>(new ReplicaPool(std::move(state)));
}

ReplicaPool::ReplicaPool(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}

ReplicaPool::~ReplicaPool() = default;

Result<ReplicaPool::Choice> ReplicaPool::choose(const Routing& routing,
                                                std::span<const ReplicaId> tried) {
  return state_->table.choose(routing, tried);
}

std::vector<ModelEntry> ReplicaPool::models() const { return state_->table.models(); }

bool ReplicaPool::ready() const noexcept { return state_->table.ready(); }

bool ReplicaPool::wait_ready(TimePoint until) noexcept { return state_->table.wait_ready(until); }

}  // namespace sluice
