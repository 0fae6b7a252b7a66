#include "scheduler/admission.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

class AdmissionTest : public testing::Test {
 protected:
  static Limits small_limits() {
    Limits limits;
    limits.max_queued_requests = 3;
    limits.max_queued_prompt_tokens = 100;
    return limits;
  }

  Submission submission(std::size_t tokens) {
    Submission made;
    made.prompt.assign(tokens, 1);
    made.samplers.push_back(nullptr);
    made.wire = wire_;
    return made;
  }

  Result<StreamReader> submit(std::size_t tokens) {
    auto ticket = admission_.reserve(1);
    if (!ticket) return tl::unexpected(ticket.error());
    return admission_.submit(std::move(*ticket), submission(tokens));
  }

  Limits limits_ = small_limits();
  ManualClock clock_;
  Doorbell doorbell_{clock_};
  Metrics metrics_;
  std::shared_ptr<WireQueue> wire_ = std::make_shared<WireQueue>([] {});
  Admission admission_{limits_, clock_, doorbell_, metrics_};
};

TEST_F(AdmissionTest, RefusalNamesTheRequestsBoundAndSaysWhenToRetry) {
  const auto first = admission_.reserve(1);
  const auto second = admission_.reserve(2);
  const auto third = admission_.reserve(1);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, Code::kResourceExhausted);
  EXPECT_NE(third.error().message.find("--max-queued-requests is 3"), std::string::npos)
      << third.error().message;
  EXPECT_TRUE(third.error().retry_after);
}

TEST_F(AdmissionTest, RefusalNamesThePromptTokensBound) {
  const auto first = submit(90);
  ASSERT_TRUE(first);
  const auto second = submit(11);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kResourceExhausted);
  EXPECT_NE(second.error().message.find("--max-queued-prompt-tokens is 100"), std::string::npos);
}

TEST_F(AdmissionTest, ARefusedRequestGivesItsPlaceBack) {
  const auto first = submit(90);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(submit(20));
  EXPECT_EQ(admission_.load().waiting, 1U);
  EXPECT_TRUE(submit(10));
}

TEST_F(AdmissionTest, ATicketGivesItsPlaceBackOnceOnly) {
  {
    auto ticket = admission_.reserve(3);
    ASSERT_TRUE(ticket);
    auto moved = std::move(*ticket);
    moved.give_back();
    moved.give_back();
  }
  EXPECT_EQ(admission_.load().waiting, 0U);
  EXPECT_TRUE(admission_.reserve(3));
}

TEST_F(AdmissionTest, ADeadlineInThePastIsRefused) {
  auto ticket = admission_.reserve(1);
  Submission late = submission(5);
  late.deadline = clock_.now();
  const auto reader = admission_.submit(std::move(*ticket), std::move(late));
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(admission_.load().waiting, 0U);
}

TEST_F(AdmissionTest, WhatIsSubmittedIsTakenOnceInOrder) {
  const auto first = submit(5);
  const auto second = submit(6);
  std::vector<Admission::Admitted> taken;
  admission_.take_submitted(taken);
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].submission.prompt.size(), 5U);
  EXPECT_EQ(taken[0].id, first->id());
  EXPECT_EQ(first->prompt_tokens(), 5U);
  admission_.take_submitted(taken);
  EXPECT_TRUE(taken.empty());
}

TEST_F(AdmissionTest, AfterCloseEverythingIsUnavailable) {
  auto before = admission_.reserve(1);
  admission_.close();
  EXPECT_EQ(admission_.reserve(1).error().code, Code::kUnavailable);
  EXPECT_EQ(admission_.submit(std::move(*before), submission(5)).error().code, Code::kUnavailable);
  EXPECT_TRUE(admission_.load().draining);
}

}  // namespace
}  // namespace sluice
