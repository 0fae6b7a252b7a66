#include "replica/attach.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "replica/test_replica.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr const char* kAlphabet = "piece \"a\"\npiece \"b\"\npiece \"c\"\nloop\n";

// One Attach call, as a gateway has it.
class Gateway {
 public:
  struct Answer {
    std::string text;
    int items = 0;
    int done = 0;
    int statuses = 0;
    inference::Status status;
  };

  explicit Gateway(TestReplica& replica) : stream_(replica.replica().Attach(&context)) {}

  void start(std::uint64_t id, int max_tokens, std::uint32_t deltas = 1000,
             std::uint32_t bytes = 100'000, std::uint32_t timeout_ms = 0) {
    inference::AttachRequest message;
    inference::Start& start = *message.add_starts();
    start.set_id(id);
    start.mutable_request()->set_model("local");
    start.mutable_request()->set_prompt("hi");
    start.mutable_request()->set_max_tokens(max_tokens);
    start.mutable_credit()->set_deltas(deltas);
    start.mutable_credit()->set_bytes(bytes);
    if (timeout_ms > 0) start.set_timeout_ms(timeout_ms);
    send(message);
  }

  void cancel(std::uint64_t id) {
    inference::AttachRequest message;
    message.add_cancels(id);
    send(message);
  }

  void grant(std::uint64_t id, std::uint32_t deltas, std::uint32_t bytes) {
    inference::AttachRequest message;
    inference::Credit& credit = *message.add_credits();
    credit.set_id(id);
    credit.set_deltas(deltas);
    credit.set_bytes(bytes);
    send(message);
  }

  void send(const inference::AttachRequest& message) { EXPECT_TRUE(stream_->Write(message)); }
  void half_close() { EXPECT_TRUE(stream_->WritesDone()); }

  // Takes one batch. False: the call has ended.
  bool read() {
    if (!stream_->Read(&batch)) return false;
    EXPECT_TRUE(batch.has_load());
    for (const inference::StepItem& item : batch.items()) {
      Answer& answer = answers[item.id()];
      answer.text += item.response().delta();
      answer.items += item.has_response();
      answer.done += item.response().done();
      if (!item.has_status()) continue;
      ++answer.statuses;
      answer.status = item.status();
    }
    return true;
  }

  // Reads until the request has ended.
  const Answer& answer(std::uint64_t id) {
    while (answers[id].statuses == 0 && read()) continue;
    return answers[id];
  }

  grpc::Status finish() { return stream_->Finish(); }

  grpc::ClientContext context;
  inference::StepBatch batch;
  std::map<std::uint64_t, Answer> answers;

 private:
  std::unique_ptr<grpc::ClientReaderWriter<inference::AttachRequest, inference::StepBatch>> stream_;
};

TEST(Attach, ManyRequestsOfOneCallEndEachOnceWithTheirOwnText) {
  TestReplica replica(kAlphabet);
  replica.run_engine();
  Gateway gateway(replica);
  for (int id = 1; id <= 50; ++id) gateway.start(static_cast<std::uint64_t>(id), id);
  for (int id = 1; id <= 50; ++id) {
    const Gateway::Answer& answer = gateway.answer(static_cast<std::uint64_t>(id));
    EXPECT_EQ(answer.text.size(), id);
    EXPECT_EQ(answer.text.substr(0, 3), std::string("abc").substr(0, static_cast<std::size_t>(id)));
    EXPECT_EQ(answer.done, 1);
    EXPECT_EQ(answer.statuses, 1);
    EXPECT_EQ(answer.status.code(), 0);
  }
}

TEST(Attach, OneMessageHoldsAStepOfAllRequests) {
  TestReplica replica(kAlphabet);
  Gateway gateway(replica);
  inference::AttachRequest message;
  for (std::uint64_t id = 1; id <= 20; ++id) {
    inference::Start& start = *message.add_starts();
    start.set_id(id);
    start.mutable_request()->set_model("local");
    start.mutable_request()->set_max_tokens(1);
    start.mutable_credit()->set_deltas(10);
    start.mutable_credit()->set_bytes(100);
  }
  gateway.send(message);
  // All twenty are in the mailbox before the first step.
  while (replica.metrics().attached_requests.value() < 20 ||
         replica.metrics().preparing.value() > 0) {
    std::this_thread::yield();
  }
  std::ignore = replica.step();
  ASSERT_TRUE(gateway.read());
  EXPECT_EQ(gateway.batch.items_size(), 20);
}

TEST(Attach, ARequestWithoutCreditSendsNothingOthersGoOnAndNoByteIsLost) {
  Limits limits;
  limits.stream_deltas = 4;
  TestReplica replica(kAlphabet, limits);
  replica.run_engine();
  Gateway gateway(replica);
  gateway.start(1, 12, 0, 0);
  gateway.start(2, 200);
  EXPECT_EQ(gateway.answer(2).text.size(), 200);
  EXPECT_EQ(gateway.answers[1].items, 0);
  gateway.grant(1, 1, 5);
  while (gateway.answers[1].items == 0) ASSERT_TRUE(gateway.read());
  EXPECT_LE(gateway.answers[1].text.size(), 5);
  EXPECT_EQ(gateway.answers[1].items, 1);
  gateway.grant(1, 100, 100);
  EXPECT_EQ(gateway.answer(1).text, "abcabcabcabc");
}

TEST(Attach, ACancelEndsARequestOnceAndFreesItsId) {
  TestReplica replica(kAlphabet);
  replica.run_engine();
  Gateway gateway(replica);
  gateway.start(1, 1 << 19, 3, 3);
  while (gateway.answers[1].items == 0) ASSERT_TRUE(gateway.read());
  gateway.cancel(1);
  EXPECT_EQ(gateway.answer(1).status.code(), grpc::StatusCode::CANCELLED);
  while (replica.load().running + replica.load().parked > 0) std::this_thread::yield();
  gateway.answers.clear();
  gateway.start(1, 3);
  EXPECT_EQ(gateway.answer(1).text, "abc");
}

TEST(Attach, ARequestCancelledBeforeItsPromptIsTokenisedNeverIs) {
  TestReplica replica(kAlphabet);
  replica.engine().hold_tokenizer();
  replica.run_engine();
  Gateway gateway(replica);
  gateway.start(1, 3);
  replica.engine().wait_for_tokenizer(1);
  gateway.start(2, 3);
  gateway.cancel(2);
  EXPECT_EQ(gateway.answer(2).status.code(), grpc::StatusCode::CANCELLED);
  replica.engine().release_tokenizer();
  EXPECT_EQ(gateway.answer(1).text, "abc");
  gateway.start(3, 3);
  EXPECT_EQ(gateway.answer(3).text, "abc");
  EXPECT_EQ(replica.engine().tokenized(), 2);
}

TEST(Attach, ARequestsDeadlineEndsItAlone) {
  TestReplica replica(kAlphabet);
  replica.run_engine();
  Gateway gateway(replica);
  gateway.start(1, 1 << 19, 0xffff'ffff, 0xffff'ffff, 50);
  gateway.start(2, 5);
  EXPECT_EQ(gateway.answer(1).status.code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(gateway.answer(2).status.code(), 0);
}

TEST(Attach, AnErrorOfOneRequestIsItsStatusAndHurtsNobodyElse) {
  TestReplica replica(kAlphabet);
  replica.run_engine();
  Gateway gateway(replica);
  gateway.start(1, -1);
  inference::AttachRequest unknown;
  unknown.add_starts()->set_id(2);
  unknown.mutable_starts(0)->mutable_request()->set_model("another");
  gateway.send(unknown);
  gateway.start(3, 3);
  EXPECT_EQ(gateway.answer(1).status.code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(gateway.answer(2).status.code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(gateway.answer(3).text, "abc");
}

TEST(Attach, ARunningIdIsRefusedAndTheRunningRequestGoesOn) {
  TestReplica replica(kAlphabet);
  replica.run_engine();
  Gateway gateway(replica);
  gateway.start(1, 1 << 19, 1, 1);
  while (gateway.answers[1].items == 0) ASSERT_TRUE(gateway.read());
  gateway.start(1, 3);
  EXPECT_EQ(gateway.answer(1).status.code(), grpc::StatusCode::INVALID_ARGUMENT);
  gateway.grant(1, 1, 1);
  const std::size_t before = gateway.answers[1].text.size();
  while (gateway.answers[1].text.size() == before) ASSERT_TRUE(gateway.read());
}

TEST(Attach, MoreRequestsThanTheBoundAreRefusedByName) {
  Limits limits;
  limits.max_attached_requests = 1;
  TestReplica replica(kAlphabet, limits);
  Gateway gateway(replica);
  gateway.start(1, 3);
  gateway.start(2, 3);
  const Gateway::Answer& refused = gateway.answer(2);
  EXPECT_EQ(refused.status.code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.status.message(), HasSubstr("--max-attached-requests is 1"));
}

TEST(Attach, AHalfClosedCallEndsWellWhenItsLastRequestHas) {
  TestReplica replica(kAlphabet);
  replica.run_engine();
  Gateway gateway(replica);
  gateway.start(1, 20);
  gateway.half_close();
  EXPECT_EQ(gateway.answer(1).text.size(), 20);
  EXPECT_FALSE(gateway.read());
  EXPECT_TRUE(gateway.finish().ok());
}

TEST(Attach, ACallThatVanishesCancelsAllItsRequests) {
  TestReplica replica(kAlphabet);
  replica.run_engine();
  Gateway gateway(replica);
  for (std::uint64_t id = 1; id <= 20; ++id) gateway.start(id, 1 << 19, 5, 1000);
  while (gateway.answers.size() < 20) ASSERT_TRUE(gateway.read());
  gateway.context.TryCancel();
  replica.wait_for_calls(0);
  while (replica.load().running + replica.load().waiting + replica.load().parked > 0)
    std::this_thread::yield();
  EXPECT_EQ(replica.load().kv_used_tokens, 0);
  EXPECT_EQ(replica.metrics().attached_requests.value(), 0);
}

TEST(Attach, TheRefusalsOfOneMessageComeInBatchesThatAClientTakes) {
  constexpr std::uint64_t kStarts = 100'000;
  TestReplica replica(kAlphabet);
  Gateway gateway(replica);
  gateway.start(kStarts + 1, 3);
  inference::AttachRequest message;
  for (std::uint64_t id = 1; id <= kStarts; ++id) message.add_starts()->set_id(id);
  message.add_cancels(kStarts + 1);
  gateway.send(message);
  std::size_t longest = 0;
  std::size_t ended = 0;
  while (ended < kStarts + 1 && gateway.read()) {
    longest = std::max(longest, gateway.batch.ByteSizeLong());
    for (const inference::StepItem& item : gateway.batch.items()) ended += item.has_status();
  }
  EXPECT_EQ(ended, kStarts + 1U);
  EXPECT_LT(longest, 2 * kMaxUnsentEndings * 256);
  EXPECT_EQ(gateway.answers[kStarts].status.code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(gateway.answers[kStarts + 1].status.code(), grpc::StatusCode::CANCELLED)
      << "what stands behind the starts is not lost";
}

TEST(Attach, WhatIsNoAttachRequestEndsTheCallAndSaysSo) {
  TestReplica replica(kAlphabet);
  replica.run_engine();
  Gateway gateway(replica);
  gateway.start(1, 1 << 19, 1, 1);
  inference::AttachRequest message;
  message.add_starts()->mutable_request()->add_stop("\xff");
  gateway.send(message);
  while (gateway.read()) continue;
  const grpc::Status status = gateway.finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("starts[0].request.stop[0]"));
  replica.wait_for_calls(0);
  EXPECT_EQ(replica.metrics().attached_requests.value(), 0);
}

TEST(Attach, RefusalsThatNobodyReadsPauseTheReadingAndNoneIsLost) {
  constexpr int kStarts = 5000;
  TestReplica replica(kAlphabet);
  Gateway gateway(replica);
  std::atomic<std::size_t> written = 0;
  std::thread writer([&gateway, &written] {
    for (int id = 1; id <= kStarts; ++id) {
      gateway.start(static_cast<std::uint64_t>(id), -1);
      ++written;
    }
  });
  while (written < kMaxUnsentEndings) std::this_thread::yield();
  for (int id = 1; id <= kStarts; ++id) {
    EXPECT_EQ(gateway.answer(static_cast<std::uint64_t>(id)).statuses, 1);
  }
  writer.join();
}

TEST(Attach, StartsCreditsAndCancelsAtAnyMomentEndEachRequestOnce) {
  constexpr int kRequests = 2000;
  Limits limits;
  limits.stream_deltas = 4;
  TestReplica replica(kAlphabet, limits);
  replica.run_engine();
  Gateway gateway(replica);
  std::thread writer([&gateway] {
    for (int i = 1; i <= kRequests; ++i) {
      const auto id = static_cast<std::uint64_t>(i);
      gateway.start(id, i % 20 + 1, 2, 3);
      if (i % 3 == 0) gateway.cancel(id);
      gateway.grant(id, 100, 100);
      if (i % 7 == 0) gateway.cancel(id - static_cast<std::uint64_t>(i % 4));
    }
    gateway.half_close();
  });
  while (gateway.read()) continue;
  writer.join();
  EXPECT_TRUE(gateway.finish().ok());
  for (int i = 1; i <= kRequests; ++i) {
    const Gateway::Answer& answer = gateway.answers[static_cast<std::uint64_t>(i)];
    EXPECT_EQ(answer.statuses, 1) << i;
    EXPECT_EQ(answer.done, answer.status.code() == 0 ? 1 : 0) << i;
    if (answer.done == 1) {
      EXPECT_EQ(answer.text.size(), i % 20 + 1) << i;
    }
  }
  replica.wait_for_calls(0);
}

}  // namespace
}  // namespace sluice
