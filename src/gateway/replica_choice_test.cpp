#include "gateway/replica_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sluice {
namespace {

using std::chrono_literals::operator""ms;

// Three healthy replicas, a, b and c, that serve "m" and "local".
struct World {
  World() {
    for (const char* name : {"a", "b", "c"}) add(name);
  }
  void add(const std::string& name) {
    ReplicaFacts one;
    one.id = ReplicaId{static_cast<std::uint32_t>(facts.size() + 1)};
    one.name = name;
    one.models = std::vector<ModelEntry>{{.name = "m", .aliases = {"local"}}};
    facts.push_back(one);
    candidates.push_back({.healthy = true});
    for (std::size_t i = 0; i < facts.size(); ++i) candidates[i].facts = &facts[i];
    routing.models = {"m"};
  }
  [[nodiscard]] Result<ReplicaChoice> choose(std::vector<ReplicaId> tried = {}) const {
    return choose_replica(candidates, routing, policy, tried, turn);
  }
  [[nodiscard]] std::string chosen(std::vector<ReplicaId> tried = {}) const {
    const auto choice = choose(std::move(tried));
    return choice ? facts[choice->candidate].name : choice.error().message;
  }

  std::vector<ReplicaFacts> facts;
  std::vector<Candidate> candidates;
  Routing routing;
  PoolPolicy policy = PoolPolicy::kLeastLoad;
  std::uint64_t turn = 0;
};

struct Row {
  const char* rule;
  std::function<void(World&)> change;
  std::string chosen;  // name
  RoutingReason reason{};
};

const std::vector<Row> kDirectives = {
    {"least load counts running, waiting and our own",
     [](World& w) {
       w.candidates[0].load.running = 2;
       w.candidates[1].load.waiting = 2;
       w.candidates[2].in_flight = 1;
     },
     "c", RoutingReason::kLeastLoad},
    {"among equals each in turn", [](World& w) { w.turn = 4; }, "b", RoutingReason::kLeastLoad},
    {"only, by name", [](World& w) { w.routing.only = {"b"}; }, "b", RoutingReason::kOnly},
    {"only, by label",
     [](World& w) {
       w.facts[2].labels = {"eu"};
       w.routing.only = {"eu"};
     },
     "c", RoutingReason::kOnly},
    {"ignore",
     [](World& w) {
       w.routing.ignore = {"a", "c"};
     },
     "b", RoutingReason::kOnly},
    {"order beats load",
     [](World& w) {
       w.routing.order = {"c", "a"};
       w.candidates[2].in_flight = 100;
     },
     "c", RoutingReason::kOrder},
    {"the first of the order that is healthy",
     [](World& w) {
       w.routing.order = {"c", "a"};
       w.candidates[2].healthy = false;
     },
     "a", RoutingReason::kOrder},
    {"fallbacks leave the order",
     [](World& w) {
       w.routing.order = {"c"};
       w.candidates[2].healthy = false;
       w.candidates[0].in_flight = 1;
     },
     "b", RoutingReason::kLeastLoad},
    {"keep nothing",
     [](World& w) {
       w.facts[1].retains_nothing = true;
       w.routing.keep_nothing = true;
     },
     "b", RoutingReason::kOnly},
    {"quantisation",
     [](World& w) {
       w.facts[1].quantization = "int4";
       w.routing.quantizations = {"int4", "int8"};
     },
     "b", RoutingReason::kOnly},
    {"target", [](World& w) { w.routing.target = "c"; }, "c", RoutingReason::kTarget},
    {"latency: the soonest first token",
     [](World& w) {
       w.routing.sort = SortBy::kLatency;
       w.candidates[0].ttft = 9ms;
       w.candidates[1].ttft = 5ms;
       w.candidates[2].ttft = 7ms;
     },
     "b", RoutingReason::kSort},
    {"latency: one that was never measured is",
     [](World& w) {
       w.routing.sort = SortBy::kLatency;
       w.candidates[0].ttft = 9ms;
       w.candidates[1].ttft = 5ms;
     },
     "c", RoutingReason::kSort},
    {"throughput: for each stream",
     [](World& w) {
       w.routing.sort = SortBy::kThroughput;
       w.candidates[0].load = {.running = 10, .tokens_per_second = 500};
       w.candidates[1].load = {.running = 2, .tokens_per_second = 400};
       w.candidates[2].load = {.running = 1, .tokens_per_second = 100};
     },
     "b", RoutingReason::kSort},
    {"round robin",
     [](World& w) {
       w.policy = PoolPolicy::kRoundRobin;
       w.turn = 5;
       w.candidates[2].in_flight = 100;
     },
     "c", RoutingReason::kRoundRobin},
    {"an ejected one is left alone",
     [](World& w) {
       w.candidates[0].standing = Standing::kEjected;
       w.candidates[1].in_flight = 1;
     },
     "c", RoutingReason::kLeastLoad},
    {"but not if it is all there is",
     [](World& w) {
       for (Candidate& one : w.candidates) one.healthy = false;
       w.candidates[1].healthy = true;
       w.candidates[1].standing = Standing::kEjected;
     },
     "b", RoutingReason::kOnly},
    {"a half-open one is tried",
     [](World& w) {
       w.routing.only = {"a"};
       w.candidates[0].standing = Standing::kHalfOpen;
     },
     "a", RoutingReason::kOnly},
};

TEST(ReplicaChoice, DirectivesDecide) {
  for (const Row& row : kDirectives) {
    SCOPED_TRACE(row.rule);
    World world;
    row.change(world);
    const auto choice = world.choose();
    ASSERT_TRUE(choice) << choice.error().message;
    EXPECT_EQ(world.facts[choice->candidate].name, row.chosen);
    EXPECT_EQ(choice->reason, row.reason);
  }
}

TEST(ReplicaChoice, ModelsAreTriedInTheirOrder) {
  World world;
  world.facts[2].models = std::vector<ModelEntry>{{.name = "better"}};
  world.routing.models = {"best", "better", "m"};
  EXPECT_EQ(world.chosen(), "c");
  EXPECT_EQ(world.choose()->model, "better");
  world.candidates[2].healthy = false;
  EXPECT_EQ(world.choose()->model, "m");
  world.routing.models = {"local"};
  EXPECT_EQ(world.choose()->model, "local");
}

TEST(ReplicaChoice, AServerThatCantSayWhatItServesTakesAnyModel) {
  World world;
  world.facts[1].models = std::vector<ModelEntry>();
  world.routing.models = {"anything"};
  EXPECT_EQ(world.chosen(), "b");
}

TEST(ReplicaChoice, NeverTheSameReplicaTwice) {
  World world;
  std::vector<ReplicaId> tried;
  std::set<std::string> names;
  for (int i = 0; i < 3; ++i) {
    const auto choice = world.choose(tried);
    ASSERT_TRUE(choice);
    names.insert(world.facts[choice->candidate].name);
    tried.push_back(world.facts[choice->candidate].id);
  }
  EXPECT_EQ(names.size(), 3U);
  EXPECT_EQ(world.choose(tried).error().code, Code::kUnavailable);
}

TEST(ReplicaChoice, WithoutFallbacksThereIsNoSecondTry) {
  World world;
  world.routing.allow_fallbacks = false;
  EXPECT_TRUE(world.choose());
  EXPECT_EQ(world.choose({ReplicaId{1}}).error().code, Code::kUnavailable);
  world.routing.order = {"a", "b"};
  EXPECT_EQ(world.chosen({ReplicaId{1}}), "b");
  EXPECT_EQ(world.choose({ReplicaId{1}, ReplicaId{2}}).error().code, Code::kUnavailable);
}

TEST(ReplicaChoice, SaysWhyNobodyTakesIt) {
  World world;
  world.routing.models = {"other"};
  EXPECT_EQ(world.choose().error().code, Code::kNotFound);
  world.routing.models = {"m"};
  world.routing.only = {"d"};
  EXPECT_EQ(world.choose().error().code, Code::kUnavailable);
  EXPECT_THAT(world.choose().error().message, testing::HasSubstr("directives"));
  world.routing.only = {};
  for (Candidate& one : world.candidates) one.healthy = false;
  EXPECT_EQ(world.choose().error().code, Code::kUnavailable);
  for (ReplicaFacts& one : world.facts) one.models.reset();
  world.routing.models = {"other"};  // who knows
  EXPECT_EQ(world.choose().error().code, Code::kUnavailable);
}

TEST(ReplicaChoice, AKeyStaysWithItsReplica) {
  World world;
  world.policy = PoolPolicy::kAffinity;
  std::map<std::string, int> shares;
  for (int key = 0; key < 300; ++key) {
    world.routing.affinity = "session-" + std::to_string(key);
    world.turn = static_cast<std::uint64_t>(key);
    const std::string first = world.chosen();
    world.turn += 1;
    EXPECT_EQ(world.chosen(), first);
    ++shares[first];
  }
  for (const auto& [name, share] : shares) EXPECT_GT(share, 60) << name;
  EXPECT_EQ(shares.size(), 3U);
  EXPECT_EQ(world.choose()->reason, RoutingReason::kPrefix);
  world.routing.affinity_is_session = true;
  EXPECT_EQ(world.choose()->reason, RoutingReason::kAffinity);
}

TEST(ReplicaChoice, AReplicaThatGoesMovesOnlyItsOwnKeys) {
  World before;
  World after;
  after.candidates[2].healthy = false;
  before.policy = after.policy = PoolPolicy::kAffinity;
  for (int key = 0; key < 100; ++key) {
    before.routing.affinity = after.routing.affinity = std::to_string(key);
    if (before.chosen() != "c") {
      EXPECT_EQ(after.chosen(), before.chosen());
    }
  }
}

TEST(ReplicaChoice, AKeyLeavesAReplicaThatHasTooMuchToDo) {
  World world;
  world.policy = PoolPolicy::kAffinity;
  world.routing.affinity = "key";
  const std::size_t home = world.choose()->candidate;
  // With x here and none elsewhere the mean is x / 3: at 1.25 of it and one more, x may be 1.
  world.candidates[home].in_flight = 1;
  EXPECT_EQ(world.choose()->candidate, home);
  world.candidates[home].in_flight = 2;
  EXPECT_NE(world.choose()->candidate, home);
  for (Candidate& one : world.candidates) one.in_flight = 100;
  world.candidates[home].in_flight = 120;
  EXPECT_EQ(world.choose()->candidate, home);
}

}  // namespace
}  // namespace sluice
