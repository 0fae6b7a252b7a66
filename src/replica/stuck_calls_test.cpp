#include "replica/stuck_calls.h"

#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "replica/test_replica.h"

namespace sluice {
namespace {

inference::GenerateRequest request(std::int32_t max_tokens) {
  inference::GenerateRequest made;
  made.set_model("local");
  made.set_max_tokens(max_tokens);
  return made;
}

void cut_until_none_is_open(TestReplica& replica) {
  while (replica.metrics().generate_open.value() > 0) {
    replica.cut_stuck_calls();
    std::this_thread::yield();
  }
}

TEST(StuckCalls, ACallWhoseClientNeverReadsIsCutWhetherItsAnswerIsCompleteOrNot) {
  for (const int max_tokens : {1, 10, 1 << 19}) {
    Limits limits;
    limits.park_limit = std::chrono::milliseconds{1};
    TestReplica replica("", limits);
    replica.run_engine();
    grpc::ClientContext context;
    const auto stream = replica.llm().Generate(&context, request(max_tokens));
    stream->WaitForInitialMetadata();
    cut_until_none_is_open(replica);
    EXPECT_GE(replica.metrics().generate_cut.value(), 1);
    EXPECT_FALSE(stream->Finish().ok());
  }
}

TEST(StuckCalls, ACallThatWaitsForTheModelIsNotStuck) {
  Limits limits;
  limits.park_limit = std::chrono::milliseconds{0};
  TestReplica replica("", limits);
  grpc::ClientContext context;
  const auto stream = replica.llm().Generate(&context, request(1));
  stream->WaitForInitialMetadata();
  for (int look = 0; look < 100; ++look) replica.cut_stuck_calls();
  EXPECT_EQ(replica.metrics().generate_cut.value(), 0);
  replica.run_engine();
  inference::GenerateResponse response;
  EXPECT_TRUE(stream->Read(&response));
}

}  // namespace
}  // namespace sluice
