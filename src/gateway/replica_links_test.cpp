#include "gateway/replica_links.h"

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "gateway/ejection.h"
#include "gateway/test_links.h"
#include "inference.grpc.pb.h"

namespace sluice {
namespace {

using std::chrono_literals::operator""ms;
using testing::HasSubstr;

GatewayLimits usual() { return {}; }

// Everything as a call of its own.
GatewayLimits calls_only() {
  GatewayLimits limits;
  limits.large_request_bytes = 0;
  return limits;
}

class ReplicaLinksTest : public testing::Test {
 protected:
  // Waits until the replica's load is so.
  static void wait_for_load(Replica& replica,
                            const std::function<bool(const inference::Load&)>& is) {
    grpc::ClientContext context;
    inference::WatchLoadRequest request;
    request.set_interval_ms(10);
    const auto stub = inference::Replica::NewStub(replica.in_process_channel());
    const auto loads = stub->WatchLoad(&context, request);
    inference::Load load;
    while (loads->Read(&load)) {
      if (is(load)) break;
    }
    context.TryCancel();
  }

  SystemClock clock_;
};

constexpr const char* kMixed =
    "piece \"Hel\"\npiece \"lo \\xF0\\x9F\"\npiece \"\\x98\\x80\"\npiece \"\"\npiece \" a rather "
    "longer piece of text\"\nloop\n";

TEST_F(ReplicaLinksTest, BothWaysGiveTheSameBytes) {
  const auto replica = start_replica(clock_, kMixed);
  TestLinks steps({replica->address()}, usual());
  TestLinks calls({replica->address()}, calls_only());
  for (const std::int32_t tokens : {1, 2, 3, 50, 2'000}) {
    const Answer a = steps.generate(TestLinks::request(tokens));
    const Answer b = calls.generate(TestLinks::request(tokens));
    ASSERT_TRUE(a.end) << a.end.error().message;
    ASSERT_TRUE(b.end) << b.end.error().message;
    EXPECT_EQ(a.text, b.text);
    EXPECT_EQ(a.tokens, static_cast<std::uint32_t>(tokens));
    EXPECT_EQ(b.tokens, static_cast<std::uint32_t>(tokens));
    ASSERT_TRUE(a.usage && b.usage);
    EXPECT_EQ(a.usage->completion_tokens, static_cast<std::uint32_t>(tokens));
    EXPECT_EQ(b.usage->prompt_tokens, a.usage->prompt_tokens);
  }
  EXPECT_THAT(steps.metrics().text(), HasSubstr("requests_total{way=\"generate\"} 0"));
  EXPECT_THAT(calls.metrics().text(), HasSubstr("requests_total{way=\"attach\"} 0"));
}

TEST_F(ReplicaLinksTest, SeveralChoicesComeApart) {
  const auto replica = start_replica(clock_, kMixed);
  TestLinks links({replica->address()}, usual());
  GenerationRequest request = TestLinks::request(10);
  request.n = 3;
  const Answer answer = links.generate(request);
  ASSERT_TRUE(answer.end);
  EXPECT_EQ(answer.tokens, 30U);
  EXPECT_EQ(answer.usage->completion_tokens, 30U);
}

TEST_F(ReplicaLinksTest, ALargeRequestGoesByItsOwnCall) {
  const auto replica = start_replica(clock_, kMixed);
  GatewayLimits limits;
  limits.large_request_bytes = 1'000;
  TestLinks links({replica->address()}, limits);
  GenerationRequest large = TestLinks::request(3);
  large.prompt.raw = std::string(2'000, 'x');
  EXPECT_TRUE(links.generate(TestLinks::request(3)).end);
  EXPECT_TRUE(links.generate(large).end);
  EXPECT_THAT(links.metrics().text(), HasSubstr("requests_total{way=\"attach\"} 1"));
  EXPECT_THAT(links.metrics().text(), HasSubstr("requests_total{way=\"generate\"} 1"));
}

TEST_F(ReplicaLinksTest, AReaderThatStopsParksItsSequenceAndLosesNothing) {
  for (const GatewayLimits& limits : {usual(), calls_only()}) {
    const auto replica = start_replica(clock_, "");
    TestLinks links({replica->address()}, limits);
    constexpr std::int32_t kTokens = 20'000;
    ReadStream stream = links.open(links.choose(), TestLinks::request(kTokens));
    // Its loop runs on: only the reader stands.
    wait_for_load(*replica, [&](const inference::Load& load) {
      links.turn();
      return load.parked() == 1;
    });
    const Answer answer = links.run(TestLinks::read_all(std::move(stream)));
    ASSERT_TRUE(answer.end) << answer.end.error().message;
    EXPECT_EQ(answer.tokens, static_cast<std::uint32_t>(kTokens));
    EXPECT_EQ(answer.text.size(), kTokens * std::string("token ").size());
  }
}

TEST_F(ReplicaLinksTest, DroppingAStreamFreesItsPlace) {
  for (const GatewayLimits& limits : {usual(), calls_only()}) {
    const auto replica = start_replica(clock_, "");
    TestLinks links({replica->address()}, limits);
    {
      ReadStream stream = links.open(links.choose(), TestLinks::request(1'000'000));
      const Arrival first = links.run(stream.next());
      EXPECT_FALSE(first.deltas.empty());
    }
    wait_for_load(*replica, [&](const inference::Load& load) {
      links.turn();
      return load.running() + load.parked() == 0;
    });
  }
}

TEST_F(ReplicaLinksTest, AReplicaThatDiesEndsItsStreamsAndIsTakenBack) {
  for (const GatewayLimits& limits : {usual(), calls_only()}) {
    auto replica = start_replica(clock_, "");
    const std::string address = replica->address();
    TestLinks links({address}, limits);
    ReadStream stream = links.open(links.choose(), TestLinks::request(100'000'000));
    EXPECT_FALSE(links.run(stream.next()).deltas.empty());
    replica.reset();
    const Answer answer = links.run(TestLinks::read_all(std::move(stream)));
    ASSERT_FALSE(answer.end);
    EXPECT_EQ(answer.end.error().code, Code::kUnavailable);
    links.wait_until_ready(false);

    replica = start_replica(clock_, "", address);
    links.wait_until_ready();
    // Whatever the loop has not heard of the death yet: the next request does not suffer from it.
    const Answer again = links.generate(TestLinks::request(5));
    EXPECT_TRUE(again.end) << again.end.error().message;
    EXPECT_EQ(again.tokens, 5U);
  }
}

TEST_F(ReplicaLinksTest, ADrainedReplicaFinishesWhatRunsAndTakesNothingNew) {
  const auto replica = start_replica(clock_, "");
  TestLinks links({replica->address()}, usual());
  const ReplicaId id = links.choose();
  ReadStream running = links.open(id, TestLinks::request(5'000));
  EXPECT_FALSE(links.run(running.next()).deltas.empty());
  replica->begin_drain(std::chrono::hours{1});
  const Answer refused = links.run(TestLinks::read_all(links.open(id, TestLinks::request(1))));
  ASSERT_FALSE(refused.end);
  EXPECT_EQ(refused.end.error().code, Code::kUnavailable);
  EXPECT_EQ(refused.deltas, 0U);
  links.wait_until_ready(false);
  EXPECT_TRUE(links.run(TestLinks::read_all(std::move(running))).end);
}

TEST_F(ReplicaLinksTest, TheDeadlineGoesAlong) {
  for (const GatewayLimits& limits : {usual(), calls_only()}) {
    const auto replica = start_replica(clock_, "hang\n");
    TestLinks links({replica->address()}, limits);
    links.wait_until_ready();
    CallContext context;
    context.deadline = clock_.now() + 50ms;
    const Answer answer = links.generate(TestLinks::request(5), context);
    ASSERT_FALSE(answer.end);
    EXPECT_EQ(answer.end.error().code, Code::kDeadlineExceeded);
  }
}

TEST_F(ReplicaLinksTest, ARequestThatProtobufCantHoldHurtsNobodyElse) {
  const auto replica = start_replica(clock_, "");
  TestLinks links({replica->address()}, usual());
  ReadStream other = links.open(links.choose(), TestLinks::request(1'000));
  GenerationRequest bad = TestLinks::request(5);
  bad.session_id = "\xFF";
  const Answer refused = links.generate(bad);
  ASSERT_FALSE(refused.end);
  EXPECT_EQ(refused.end.error().code, Code::kInvalidArgument);
  CallContext odd;
  odd.request_id = "\xFF\n";
  odd.traceparent = "\xFF\n";
  EXPECT_TRUE(links.generate(TestLinks::request(5), odd).end);
  EXPECT_TRUE(links.run(TestLinks::read_all(std::move(other))).end);
}

TEST_F(ReplicaLinksTest, AReplicasRefusalComesThroughWithItsCode) {
  for (const GatewayLimits& limits : {usual(), calls_only()}) {
    const auto replica = start_replica(clock_, "");
    TestLinks links({replica->address()}, limits);
    GenerationRequest bad = TestLinks::request(0);
    const Answer answer = links.generate(bad);
    ASSERT_FALSE(answer.end);
    EXPECT_EQ(answer.end.error().code, Code::kInvalidArgument);
    EXPECT_THAT(answer.end.error().message, HasSubstr("max_tokens"));
  }
}

TEST_F(ReplicaLinksTest, CountsAndEmbeds) {
  const auto replica = start_replica(clock_, "");
  TestLinks links({replica->address()}, usual());
  PromptSource prompt;
  prompt.raw = "hello";
  const auto count = links.run(links.links().count_tokens(links.choose(), "local", prompt, {}));
  ASSERT_TRUE(count) << count.error().message;
  EXPECT_EQ(count->tokens, 6U);
  EXPECT_GT(count->context_tokens, 0U);
  const auto embedded = links.run(links.links().embed(links.choose(), "local", {"a", "b"}, {}));
  ASSERT_TRUE(embedded) << embedded.error().message;
  EXPECT_EQ(embedded->embeddings.size(), 2U);
  const auto unknown = links.run(links.links().count_tokens(links.choose(), "x", prompt, {}));
  EXPECT_EQ(unknown.error().code, Code::kNotFound);
}

TEST_F(ReplicaLinksTest, LinksThatEndWhileRequestsRunEndThemAndWait) {
  const auto replica = start_replica(clock_, "");
  for (const GatewayLimits& limits : {usual(), calls_only()}) {
    auto links = std::make_unique<TestLinks>(std::vector{replica->address()}, limits);
    const ReadStream stream = links->open(links->choose(), TestLinks::request(1'000'000));
    links.reset();
  }
}

TEST_F(ReplicaLinksTest, AReplicaThatFailsOnEndIsLeftAlone) {
  const auto failing = start_replica(clock_, "fail \"broken\"\n");
  const auto good = start_replica(clock_, "");
  const std::string address = failing->address();
  GatewayLimits limits;
  limits.eject_time = 1'000'000ms;
  TestLinks links({address + ";name=failing", good->address() + ";name=good"}, limits,
                  PoolPolicy::kRoundRobin);
  const auto both_are_up = [&] {
    const auto choice = links.pool().choose(TestLinks::routing(), {});
    return choice && choice->reason == RoutingReason::kRoundRobin;
  };
  while (!both_are_up()) std::this_thread::yield();
  int failures = 0;
  for (int i = 0; i < 20; ++i) failures += links.generate(TestLinks::request(1)).end ? 0 : 1;
  EXPECT_EQ(failures, static_cast<int>(Ejection::kFailuresToEject));
  EXPECT_THAT(links.metrics().text(),
              HasSubstr("sluice_gateway_replica_ejected{replica=\"failing\"} 1"));
}

TEST_F(ReplicaLinksTest, AnEjectedReplicaIsTriedAndTakenBackWhenItSucceeds) {
  auto replica = start_replica(clock_, "fail \"broken\"\n");
  const std::string address = replica->address();
  GatewayLimits limits;
  limits.eject_time = 1ms;
  TestLinks links({address + ";name=a"}, limits);
  for (std::uint32_t i = 0; i < Ejection::kFailuresToEject; ++i)
    EXPECT_FALSE(links.generate(TestLinks::request(1)).end);
  EXPECT_THAT(links.metrics().text(), HasSubstr("sluice_gateway_replica_ejected{replica=\"a\"} 1"));
  replica.reset();
  links.wait_until_ready(false);
  replica = start_replica(clock_, "", address);
  links.wait_until_ready();
  EXPECT_TRUE(links.generate(TestLinks::request(1)).end);
  EXPECT_THAT(links.metrics().text(), HasSubstr("sluice_gateway_replica_ejected{replica=\"a\"} 0"));
}

}  // namespace
}  // namespace sluice
