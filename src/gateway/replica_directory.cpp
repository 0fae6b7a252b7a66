#include "gateway/replica_directory.h"

#include <algorithm>
#include <utility>

#include "base/concat.h"
#include "base/log.h"

namespace sluice {
namespace {

ReplicaFacts facts_of(const ReplicaSpec& spec, const std::string& address) {
  ReplicaFacts facts;
  if (!spec.needs_resolving()) {
    facts.name = spec.name();
  } else {
    // One name may stand for several.
    facts.name = spec.label("name").empty() ? address : concat(spec.label("name"), "/", address);
  }
  facts.labels = {spec.name(), spec.address(), address};
  for (const auto& [key, value] : spec.labels) facts.labels.push_back(value);
  facts.quantization = spec.label("quantization");
  facts.retains_nothing = spec.label("retain") == "none";
  return facts;
}

}  // namespace

ReplicaDirectory::ReplicaDirectory(ReplicaTable& table, Clock& clock,
                                   std::shared_ptr<const ReplicaAccess> access,
                                   std::vector<ReplicaSpec> specs,
                                   std::shared_ptr<const ReplicaEndpoint> local,
                                   std::chrono::milliseconds interval)
    : table_(table), clock_(clock), access_(std::move(access)), interval_(interval) {
  if (local) {
    ReplicaFacts facts;
    facts.name = "local";
    local_ = watch(std::move(facts), std::move(local), "local");
  }
  bool any_names = false;
  for (ReplicaSpec& spec : specs) {
    Place& place = places_.emplace_back();
    place.spec = std::move(spec);
    if (place.spec.needs_resolving()) {
      any_names = true;
    } else {
      add(place, place.spec.address());
    }
  }
  if (any_names) resolver_ = std::thread([this] { run(); });
}

ReplicaDirectory::~ReplicaDirectory() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (resolver_.joinable()) resolver_.join();
}

void ReplicaDirectory::run() noexcept {
  do {
    for (Place& place : places_) {
      if (place.spec.needs_resolving()) resolve_again(place);
    }
  } while (wait());
}

// False: it is time to stop.
bool ReplicaDirectory::wait() {
  const TimePoint until = clock_.now() + interval_;
  const MutexLock lock(mutex_);
  while (!stopping_ && clock_.now() < until) clock_.wait_until(stop_, mutex_, until);
  return !stopping_;
}

void ReplicaDirectory::resolve_again(Place& place) {
  const auto addresses = resolve(place.spec);
  if (!addresses) {
    if (!std::exchange(place.failing, true)) log_warning("pool", addresses.error().message);
    return;
  }
  place.failing = false;
  std::erase_if(place.known, [&](const auto& known) {
    if (std::binary_search(addresses->begin(), addresses->end(), known.first)) return false;
    log_info("pool", concat("replica ", known.first, " is gone from ", place.spec.host));
    table_.remove(known.second.id);
    return true;
  });
  for (const std::string& address : *addresses) {
    if (!place.known.contains(address)) add(place, address);
  }
}

void ReplicaDirectory::add(Place& place, const std::string& address) {
  const std::string host = place.spec.needs_resolving() ? place.spec.host : std::string();
  place.known.emplace(
      address, watch(facts_of(place.spec, address),
                     std::make_shared<ReplicaEndpoint>(access_, address, host), place.spec.name()));
}

ReplicaDirectory::Known ReplicaDirectory::watch(ReplicaFacts facts,
                                                std::shared_ptr<const ReplicaEndpoint> endpoint,
                                                const std::string& label) {
  Known known;
  known.id = table_.add(std::move(facts), endpoint, label);
  known.health = std::make_unique<ReplicaHealth>(table_, clock_, known.id, std::move(endpoint));
  return known;
}

}  // namespace sluice
