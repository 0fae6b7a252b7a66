#include "replica/generate_reactor.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "replica/test_replica.h"

namespace sluice {
namespace {

using testing::HasSubstr;

inference::GenerateRequest request(int max_tokens) {
  inference::GenerateRequest made;
  made.set_model("local");
  made.set_prompt("hi");
  made.set_max_tokens(max_tokens);
  return made;
}

// One Generate call, read by the test.
struct Call {
  Call(TestReplica& replica, const inference::GenerateRequest& asked)
      : stream(replica.llm().Generate(&context, asked)) {}

  // Returns when the request is admitted: headers come then.
  void wait_until_admitted() { stream->WaitForInitialMetadata(); }
  // False at the end.
  bool read() {
    if (!stream->Read(&message)) return false;
    text += message.delta();
    ++messages;
    return true;
  }
  grpc::Status drain() {
    while (read()) continue;
    return stream->Finish();
  }
  [[nodiscard]] std::string trailing(const std::string& key) const {
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto found = trailers.find(key);
    return found == trailers.end() ? "" : std::string(found->second.data(), found->second.size());
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<inference::GenerateResponse>> stream;
  inference::GenerateResponse message;
  std::string text;
  int messages = 0;
};

TEST(GenerateReactor, TheLastMessageHasTheLastDeltaAndDone) {
  TestReplica replica("piece \"a\"\npiece \"b\"\npiece \"c\"\nloop\n");
  Call call(replica, request(1));
  call.wait_until_admitted();
  replica.step_until([&] { return replica.load().running == 0 && replica.load().waiting == 0; });
  ASSERT_TRUE(call.read());
  EXPECT_EQ(call.text, "a");
  EXPECT_TRUE(call.message.done());
  EXPECT_EQ(call.message.completion_tokens(), 1);
  EXPECT_EQ(call.message.finish_reason(), inference::FINISH_REASON_LENGTH);
  EXPECT_TRUE(call.drain().ok());
  EXPECT_EQ(call.messages, 1);
}

TEST(GenerateReactor, TokensThatComeWhileAWriteIsOutJoinAndNotAByteIsMissing) {
  TestReplica replica("piece \"a\"\npiece \"b\"\npiece \"c\"\nloop\n");
  Call call(replica, request(30));
  call.wait_until_admitted();
  replica.step_until([&] { return replica.load().running == 0 && replica.load().waiting == 0; });
  EXPECT_TRUE(call.drain().ok());
  EXPECT_EQ(call.text, "abcabcabcabcabcabcabcabcabcabc");
  EXPECT_EQ(call.message.completion_tokens(), 30);
  // On this channel a write is done when its message is read, and none was before the last token.
  EXPECT_LE(call.messages, 2);
}

TEST(GenerateReactor, AClientThatDoesNotReadParksItsSequenceAndThenGetsEveryByte) {
  Limits limits;
  limits.stream_deltas = 4;
  TestReplica replica("piece \"a\"\npiece \"b\"\npiece \"c\"\nloop\n", limits);
  Call call(replica, request(30));
  call.wait_until_admitted();
  replica.step_until([&] { return replica.load().parked == 1; });
  EXPECT_LT(replica.metrics().generate.tokens.value(), 30);
  replica.run_engine();
  EXPECT_TRUE(call.drain().ok());
  EXPECT_EQ(call.text, "abcabcabcabcabcabcabcabcabcabc");
}

TEST(GenerateReactor, ChoicesAreToldApart) {
  TestReplica replica("piece \"a\"\npiece \"b\"\n");
  inference::GenerateRequest two = request(2);
  two.set_n(2);
  Call call(replica, two);
  replica.run_engine();
  std::string texts[2];
  int finished = 0;
  while (call.read()) {
    texts[call.message.index()] += call.message.delta();
    finished += call.message.finish_reason() != inference::FINISH_REASON_UNSPECIFIED;
  }
  EXPECT_TRUE(call.stream->Finish().ok());
  EXPECT_EQ(texts[0], "ab");
  EXPECT_EQ(texts[1], "ab");
  EXPECT_EQ(finished, 2);
  EXPECT_EQ(call.message.completion_tokens(), 4);
}

TEST(GenerateReactor, AFailureComesAfterTheBytesThatWereMade) {
  TestReplica replica("piece \"a\"\npiece \"b\"\nfail \"no more\"\n");
  Call call(replica, request(30));
  replica.run_engine();
  const grpc::Status status = call.drain();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(call.text, "ab");
  EXPECT_FALSE(call.message.done());
}

TEST(GenerateReactor, ACallCancelledWhileItsPromptIsTokenisedLeavesNothing) {
  TestReplica replica;
  replica.engine().hold_tokenizer();
  Call call(replica, request(1000));
  replica.engine().wait_for_tokenizer(1);
  call.context.TryCancel();
  replica.wait_for_calls(0);
  replica.engine().release_tokenizer();
  replica.step_until([&] { return replica.load().waiting == 0 && replica.load().running == 0; });
  EXPECT_EQ(call.drain().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(GenerateReactor, ACallCancelledBeforeItsPromptIsTokenisedNeverIs) {
  TestReplica replica;
  replica.engine().hold_tokenizer();
  Call first(replica, request(1));
  replica.engine().wait_for_tokenizer(1);
  Call second(replica, request(1));
  while (replica.calls().count() < 2) std::this_thread::yield();
  second.context.TryCancel();
  replica.wait_for_calls(1);
  replica.engine().release_tokenizer();
  Call third(replica, request(1));
  third.wait_until_admitted();
  EXPECT_EQ(replica.engine().tokenized(), 2);
  EXPECT_EQ(replica.metrics().prepare_skipped.value(), 1);
}

TEST(GenerateReactor, ACallCancelledInTheQueueNeverRuns) {
  TestReplica replica;
  Call call(replica, request(1000));
  call.wait_until_admitted();
  call.context.TryCancel();
  replica.wait_for_calls(0);
  std::ignore = replica.step();
  EXPECT_EQ(replica.load().waiting, 0);
  EXPECT_EQ(replica.load().running, 0);
  EXPECT_EQ(replica.metrics().generate.tokens.value(), 0);
}

TEST(GenerateReactor, ACallCancelledWhileItDecodesIsGoneAtTheNextStep) {
  TestReplica replica;
  Call call(replica, request(1000));
  call.wait_until_admitted();
  replica.step_until([&] { return replica.load().running == 1; });
  call.context.TryCancel();
  replica.wait_for_calls(0);
  std::ignore = replica.step();
  EXPECT_EQ(replica.load().running, 0);
  EXPECT_EQ(replica.load().kv_used_tokens, 0);
}

TEST(GenerateReactor, ACallCancelledWhileParkedIsGoneAtTheNextStep) {
  Limits limits;
  limits.stream_deltas = 4;
  TestReplica replica("", limits);
  Call call(replica, request(1000));
  call.wait_until_admitted();
  replica.step_until([&] { return replica.load().parked == 1; });
  call.context.TryCancel();
  replica.wait_for_calls(0);
  std::ignore = replica.step();
  EXPECT_EQ(replica.load().parked, 0);
  EXPECT_EQ(replica.load().kv_used_tokens, 0);
}

TEST(GenerateReactor, ADeadlineEndsALongGeneration) {
  TestReplica replica;
  replica.run_engine();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  const auto stream = replica.llm().Generate(&context, request(1 << 19));
  inference::GenerateResponse message;
  while (stream->Read(&message)) continue;
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  replica.wait_for_calls(0);
}

TEST(GenerateReactor, AFullQueueRefusesWithATimeToRetryAndNoHeaders) {
  Limits limits;
  limits.max_queued_requests = 1;
  TestReplica replica("", limits);
  Call first(replica, request(1));
  first.wait_until_admitted();
  Call second(replica, request(1));
  const grpc::Status status = second.drain();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("--max-queued-requests"));
  EXPECT_NE(second.trailing("grpc-retry-pushback-ms"), "");
  EXPECT_NE(second.trailing("retry-after-ms"), "");
  EXPECT_EQ(second.context.GetServerInitialMetadata().count("x-request-id"), 0);
}

TEST(GenerateReactor, AMessageOverTheLimitIsRefusedByName) {
  Limits limits;
  limits.max_message_bytes = 1000;
  TestReplica replica("", limits);
  inference::GenerateRequest large = request(1);
  large.set_prompt(std::string(2000, 'x'));
  Call call(replica, large);
  const grpc::Status status = call.drain();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("--max-message-bytes is 1000"));
}

TEST(GenerateReactor, AGivenRequestIdIsEchoedInTheHeadersAndOursComesInTheTrailers) {
  TestReplica replica;
  replica.run_engine();
  const auto ids = [&replica](const std::string& given) {
    grpc::ClientContext context;
    if (!given.empty()) context.AddMetadata("x-request-id", given);
    const auto stream = replica.llm().Generate(&context, request(1));
    inference::GenerateResponse message;
    while (stream->Read(&message)) continue;
    EXPECT_TRUE(stream->Finish().ok());
    const auto id_in = [](const auto& metadata) {
      const auto found = metadata.find("x-request-id");
      return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
    };
    return std::pair(id_in(context.GetServerInitialMetadata()),
                     id_in(context.GetServerTrailingMetadata()));
  };
  EXPECT_EQ(ids("Ab.9_-"), std::pair(std::string("Ab.9_-"), std::string()));
  for (const std::string& given :
       {std::string(), std::string("not an id"), std::string(129, 'a')}) {
    const auto [header, trailer] = ids(given);
    EXPECT_EQ(header, "") << given;
    EXPECT_EQ(trailer.size(), 32) << given;
  }
}

TEST(GenerateReactor, APriorityThatIsNoIntegerIsRefused) {
  TestReplica replica;
  for (const char* priority : {"high", "1.5", "", "999999999999", "101"}) {
    grpc::ClientContext context;
    context.AddMetadata("openengine-priority", priority);
    const auto stream = replica.llm().Generate(&context, request(1));
    inference::GenerateResponse message;
    EXPECT_FALSE(stream->Read(&message));
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << priority;
  }
}

TEST(GenerateReactor, NewCallsAreUnavailableOnceTheGateIsClosed) {
  TestReplica replica;
  replica.calls().close();
  Call call(replica, request(1));
  EXPECT_EQ(call.drain().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(GenerateReactor, AThousandCancelsAtAnyMomentLeaveNoTrace) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 250;
  TestReplica replica;
  replica.run_engine();
  std::vector<std::thread> clients;
  for (int thread = 0; thread < kThreads; ++thread) {
    clients.emplace_back([&replica, thread] {
      for (int i = 0; i < kCalls; ++i) {
        Call call(replica, request(1 << 19));
        for (int reads = (i + thread) % 5; reads > 0; --reads) EXPECT_TRUE(call.read());
        call.context.TryCancel();
        EXPECT_EQ(call.drain().error_code(), grpc::StatusCode::CANCELLED);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  replica.wait_for_calls(0);
  while (replica.load().running + replica.load().waiting + replica.load().parked > 0)
    std::this_thread::yield();
  EXPECT_EQ(replica.load().kv_used_tokens, 0);
  EXPECT_EQ(replica.metrics().generate_open.value(), 0);
}

}  // namespace
}  // namespace sluice
