#include "gateway/replica_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(ReplicaSpec, IsAnAddressWithLabels) {
  const auto spec = parse_replica("10.0.0.1:50051;name=a;retain=none;zone=eu");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->address(), "10.0.0.1:50051");
  EXPECT_EQ(spec->name(), "a");
  EXPECT_EQ(spec->label("retain"), "none");
  EXPECT_EQ(spec->label("zone"), "eu");
  EXPECT_EQ(spec->label("other"), "");
  EXPECT_FALSE(spec->needs_resolving());
}

TEST(ReplicaSpec, WithoutANameItIsCalledByItsAddress) {
  EXPECT_EQ(parse_replica("[::1]:50051")->name(), "[::1]:50051");
  EXPECT_EQ(parse_replica("replicas.internal:1")->name(), "replicas.internal:1");
}

TEST(ReplicaSpec, NamesAreResolvedButLocalhostIsOneMachine) {
  EXPECT_TRUE(parse_replica("replicas.internal:1")->needs_resolving());
  EXPECT_FALSE(parse_replica("localhost:1")->needs_resolving());
  EXPECT_FALSE(parse_replica("[::1]:1")->needs_resolving());
}

TEST(ReplicaSpec, AnythingElseIsRefusedAndNamesTheFlag) {
  for (const char* text : {"", ":1", "host", "host:", "host:0", "host:65536", "host:1x", "::1:1",
                           "host:1;", "host:1;name", "host:1;=a", "host:1;name=", "host:1;a=b;"}) {
    const auto spec = parse_replica(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, Code::kInvalidArgument);
    EXPECT_THAT(spec.error().message, testing::HasSubstr("--replica"));
  }
}

TEST(ReplicaSpec, ResolvingGivesEachAddressOnceWithThePort) {
  ReplicaSpec spec;
  spec.host = "127.0.0.1";
  spec.port = 7;
  const auto addresses = resolve(spec);
  ASSERT_TRUE(addresses);
  EXPECT_THAT(*addresses, testing::ElementsAre("127.0.0.1:7"));
}

}  // namespace
}  // namespace sluice
