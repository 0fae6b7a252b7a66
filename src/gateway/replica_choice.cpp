#include "gateway/replica_choice.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "base/fnv1a.h"

namespace sluice {
namespace {

using Indices = std::vector<std::size_t>;  // of candidates

bool holds(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool is_called(const ReplicaFacts& facts, std::string_view word) {
  return facts.name == word || holds(facts.labels, word);
}

bool is_any_of(const ReplicaFacts& facts, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return is_called(facts, word); });
}

bool serves(const ReplicaFacts& facts, std::string_view model) {
  if (!facts.models) return false;
  return facts.models->empty() ||
         std::any_of(facts.models->begin(), facts.models->end(), [&](const ModelEntry& entry) {
           return entry.name == model || holds(entry.aliases, model);
         });
}

// Whether the client's directives let it have the request, however it is now.
bool permitted(const ReplicaFacts& facts, const Routing& routing) {
  if (!routing.target.empty() && !is_called(facts, routing.target)) return false;
  if (!routing.only.empty() && !is_any_of(facts, routing.only)) return false;
  if (is_any_of(facts, routing.ignore)) return false;
  if (routing.keep_nothing && !facts.retains_nothing) return false;
  if (!routing.quantizations.empty()) {
    const std::string_view named = facts.quantization;
    const std::string_view known = named.empty() ? "unknown" : named;
    if (!holds(routing.quantizations, known)) return false;
  }
  return routing.allow_fallbacks || routing.order.empty() || is_any_of(facts, routing.order);
}

std::uint64_t load_of(const Candidate& candidate) noexcept {
  return std::uint64_t{candidate.load.running} + candidate.load.waiting + candidate.in_flight;
}

// FNV-1a, then the finaliser of SplitMix64: replicas' names differ in their last character only.
std::uint64_t weight_of(std::string_view key, std::string_view name) noexcept {
  Fnv1a fingerprint;
  fingerprint.add(key);
  fingerprint.add(std::string_view("\0", 1));
  fingerprint.add(name);
  std::uint64_t hash = fingerprint.value();
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebU;
  return hash ^ (hash >> 31);
}

class Chooser {
 public:
  Chooser(std::span<const Candidate> candidates, const Routing& routing, PoolPolicy policy,
          std::uint64_t turn)
      : candidates_(candidates), routing_(routing), policy_(policy), turn_(turn) {}

  // Of these, which are not empty.
  [[nodiscard]] std::pair<std::size_t, RoutingReason> among(const Indices& open) const {
    if (!routing_.target.empty()) return {least_loaded(open), RoutingReason::kTarget};
    for (const std::string& word : routing_.order) {
      Indices called;
      std::copy_if(open.begin(), open.end(), std::back_inserter(called),
                   [&](std::size_t i) { return is_called(*candidates_[i].facts, word); });
      if (!called.empty()) return {least_loaded(called), RoutingReason::kOrder};
    }
    if (open.size() == 1) return {open.front(), RoutingReason::kOnly};
    if (routing_.sort != SortBy::kNone) return {best_sorted(open), RoutingReason::kSort};
    if (policy_ == PoolPolicy::kRoundRobin)
      return {open[turn_ % open.size()], RoutingReason::kRoundRobin};
    if (policy_ == PoolPolicy::kAffinity && !routing_.affinity.empty()) {
      if (const auto kept = by_affinity(open))
        return {*kept,
                routing_.affinity_is_session ? RoutingReason::kAffinity : RoutingReason::kPrefix};
    }
    return {least_loaded(open), RoutingReason::kLeastLoad};
  }

 private:
  // The first of the best, beginning at another one each turn.
  template <typename Better>
  [[nodiscard]] std::size_t best(const Indices& open, const Better& better) const {
    std::size_t found = open[turn_ % open.size()];
    for (std::size_t i = 1; i < open.size(); ++i) {
      const std::size_t other = open[(turn_ + i) % open.size()];
      if (better(candidates_[other], candidates_[found])) found = other;
    }
    return found;
  }

  [[nodiscard]] std::size_t least_loaded(const Indices& open) const {
    return best(open,
                [](const Candidate& a, const Candidate& b) { return load_of(a) < load_of(b); });
  }

  // Latency: the soonest first token, one that was never measured first, so that it is. Throughput:
  // the most tokens per second for each of its streams.
  [[nodiscard]] std::size_t best_sorted(const Indices& open) const {
    if (routing_.sort == SortBy::kLatency) {
      return best(open, [](const Candidate& a, const Candidate& b) {
        return a.ttft.value_or(Duration::zero()) < b.ttft.value_or(Duration::zero());
      });
    }
    return best(open, [](const Candidate& a, const Candidate& b) {
      const auto each = [](const Candidate& one) {
        return one.load.tokens_per_second / static_cast<float>(std::max(1U, one.load.running));
      };
      return each(a) > each(b);
    });
  }

  // Rendezvous hashing: the replica whose name weighs most with this key, or the next if that has
  // too much to do already. A replica that comes or goes moves only the keys that are its own.
  [[nodiscard]] std::optional<std::size_t> by_affinity(const Indices& open) const {
    const std::uint64_t sum = std::accumulate(
        open.begin(), open.end(), std::uint64_t{0},
        [&](std::uint64_t total, std::size_t i) { return total + load_of(candidates_[i]); });
    const double most =
        kAffinityStretch * static_cast<double>(sum) / static_cast<double>(open.size()) + 1;
    std::optional<std::size_t> found;
    std::uint64_t heaviest = 0;
    for (const std::size_t i : open) {
      if (static_cast<double>(load_of(candidates_[i])) > most) continue;
      const std::uint64_t weight = weight_of(routing_.affinity, candidates_[i].facts->name);
      if (found && weight <= heaviest) continue;
      found = i;
      heaviest = weight;
    }
    return found;
  }

  std::span<const Candidate> candidates_;
  const Routing& routing_;
  PoolPolicy policy_;
  std::uint64_t turn_;
};

Error nobody(std::span<const Candidate> candidates, const Routing& routing) {
  const auto any = [&](const auto& is) {
    return std::any_of(candidates.begin(), candidates.end(), is);
  };
  const auto serves_one = [&](const Candidate& candidate) {
    return std::any_of(routing.models.begin(), routing.models.end(),
                       [&](const std::string& model) { return serves(*candidate.facts, model); });
  };
  const bool any_described =
      any([](const Candidate& candidate) { return candidate.facts->models.has_value(); });
  if (any_described && !any(serves_one))
    return {Code::kNotFound, "model is not served by any replica"};
  if (any_described && !any([&](const Candidate& candidate) {
        return serves_one(candidate) && permitted(*candidate.facts, routing);
      })) {
    return {Code::kUnavailable, "no replica meets the request's routing directives"};
  }
  return {Code::kUnavailable, "no replica can take the request now"};
}

}  // namespace

Result<ReplicaChoice> choose_replica(std::span<const Candidate> candidates, const Routing& routing,
                                     PoolPolicy policy, std::span<const ReplicaId> tried,
                                     std::uint64_t turn) {
  const Chooser chooser(candidates, routing, policy, turn);
  if (!tried.empty() && !routing.allow_fallbacks && routing.order.empty())
    return tl::unexpected(nobody(candidates, routing));
  for (const std::string& model : routing.models) {
    Indices open;
    Indices ejected;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Candidate& candidate = candidates[i];
      const ReplicaFacts& facts = *candidate.facts;
      if (!candidate.healthy || !serves(facts, model) || !permitted(facts, routing)) continue;
      if (std::find(tried.begin(), tried.end(), facts.id) != tried.end()) continue;
      (candidate.standing == Standing::kEjected ? ejected : open).push_back(i);
    }
    if (open.empty() && ejected.empty()) continue;
    const auto [candidate, reason] = chooser.among(open.empty() ? ejected : open);
    return ReplicaChoice{candidate, model, reason};
  }
  return tl::unexpected(nobody(candidates, routing));
}

}  // namespace sluice
