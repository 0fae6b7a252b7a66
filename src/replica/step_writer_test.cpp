#include "replica/step_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "inference.pb.h"
#include "replica/replica_metrics.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint32_t kMost = 3;

Delta text(std::string bytes, std::uint32_t index = 0) {
  return {.index = index,
          .tokens = 1,
          .bytes = std::move(bytes),
          .logprobs = {},
          .finish_reason = {},
          .matched_stop = {}};
}

class StepWriterTest : public testing::Test {
 protected:
  // A request with its stream; the writer's end is the test's.
  StreamWriter start(WireId id, StreamReader::Credit credit = StreamReader::Credit::unlimited(),
                     std::uint32_t choices = 1) {
    auto [writer, reader] = make_token_stream(options(id));
    const auto serial = open(id, credit, choices);
    steps_.prepared(id, serial, std::move(reader));
    return std::move(writer);
  }

  StreamOptions options(WireId id) {
    return {.id = RequestId{id},
            .prompt_tokens = 7,
            .wire_id = id,
            .wire = wire_,
            .doorbell = &doorbell_,
            .clock = &clock_};
  }

  StepWriter::Serial open(WireId id, StreamReader::Credit credit, std::uint32_t choices = 1) {
    return steps_.open({.id = id,
                        .choices = choices,
                        .credit = credit,
                        .pass = *calls_.enter(),
                        .claim = Claim()});
  }

  // The next batch, one line for each item: id, delta, and how it ended.
  std::vector<std::string> next() {
    inference::StepBatch batch;
    std::vector<std::string> lines;
    const bool filled = steps_.fill(*wire_, batch);
    EXPECT_EQ(filled, batch.items_size() > 0);
    for (const inference::StepItem& item : batch.items()) {
      std::string line = std::to_string(item.id()) + " " + item.response().delta();
      if (item.response().done()) line += " done";
      if (item.has_status()) line += " code " + std::to_string(item.status().code());
      lines.push_back(std::move(line));
    }
    return lines;
  }

  Limits limits_ = [] {
    Limits l;
    l.max_attached_requests = kMost;
    return l;
  }();
  ManualClock clock_;
  Doorbell doorbell_{clock_};
  Metrics series_;
  ReplicaMetrics metrics_{series_};
  Gate calls_;
  std::shared_ptr<WireQueue> wire_ = std::make_shared<WireQueue>([] {});
  StepWriter steps_{"model", limits_, clock_, metrics_};
};

TEST_F(StepWriterTest, OneBatchHoldsWhatAStepMadeForAllRequests) {
  StreamWriter a = start(1);
  StreamWriter b = start(2);
  std::ignore = a.push(text("x"));
  std::ignore = b.push(text("y"));
  EXPECT_THAT(next(), ElementsAre("1 x", "2 y"));
  EXPECT_THAT(next(), IsEmpty());
}

TEST_F(StepWriterTest, StepsThatComeWhileABatchIsWrittenJoin) {
  StreamWriter a = start(1);
  std::ignore = a.push(text("x"));
  std::ignore = a.push(text("y"));
  EXPECT_THAT(next(), ElementsAre("1 xy"));
}

TEST_F(StepWriterTest, WithoutCreditNothingIsSentAndOthersGoOn) {
  StreamWriter starved = start(1, {});
  StreamWriter other = start(2);
  std::ignore = starved.push(text("x"));
  std::ignore = other.push(text("y"));
  EXPECT_THAT(next(), ElementsAre("2 y"));
  std::ignore = other.push(text("z"));
  EXPECT_THAT(next(), ElementsAre("2 z"));
  steps_.grant(1, {.deltas = 1, .bytes = 10});
  EXPECT_THAT(next(), ElementsAre("1 x"));
}

TEST_F(StepWriterTest, CreditIsNeverExceededInBytesOrDeltas) {
  StreamWriter a = start(1, {.deltas = 2, .bytes = 3}, 2);
  std::ignore = a.push(text("abcd", 0));
  std::ignore = a.push(text("efgh", 1));
  EXPECT_THAT(next(), ElementsAre("1 abc"));
  steps_.grant(1, {.deltas = 0, .bytes = 100});
  EXPECT_THAT(next(), ElementsAre("1 d"));
  steps_.grant(1, {.deltas = 1, .bytes = 0});
  EXPECT_THAT(next(), ElementsAre("1 efgh"));
}

TEST_F(StepWriterTest, GrantsAddUpAndSaturate) {
  StreamWriter a = start(1, {.deltas = 0xffff'ffff, .bytes = 0});
  steps_.grant(1, {.deltas = 5, .bytes = 1});
  steps_.grant(1, {.deltas = 5, .bytes = 2});
  std::ignore = a.push(text("abcd"));
  EXPECT_THAT(next(), ElementsAre("1 abc"));
}

TEST_F(StepWriterTest, TheLastDeltaTheCountsAndTheStatusAreOneItem) {
  StreamWriter a = start(1);
  a.finish(text("x"),
           Usage{.prompt_tokens = 7, .completion_tokens = 1, .cached_tokens = 0, .timings = {}});
  EXPECT_THAT(next(), ElementsAre("1 x done code 0"));
  EXPECT_THAT(next(), IsEmpty());
  EXPECT_TRUE(steps_.idle());
}

TEST_F(StepWriterTest, AnEndWithoutADeltaNeedsNoCredit) {
  StreamWriter a = start(1, {});
  a.finish(std::nullopt,
           Usage{.prompt_tokens = 7, .completion_tokens = 0, .cached_tokens = 0, .timings = {}});
  EXPECT_THAT(next(), ElementsAre("1  done code 0"));
}

TEST_F(StepWriterTest, AFailureDoesNotWaitForCredit) {
  StreamWriter a = start(1, {.deltas = 1, .bytes = 1});
  std::ignore = a.push(text("xy"));
  a.finish(std::nullopt, fail(Code::kDeadlineExceeded, "late"));
  EXPECT_THAT(next(), ElementsAre("1 x code 4"));
}

TEST_F(StepWriterTest, ACancelDropsTheReaderAndAnswersOnce) {
  StreamWriter a = start(1);
  std::ignore = a.push(text("x"));
  steps_.cancel(1);
  EXPECT_TRUE(a.reader_gone());
  steps_.cancel(1);
  EXPECT_THAT(next(), ElementsAre("1  code 1"));
  EXPECT_THAT(next(), IsEmpty());
}

TEST_F(StepWriterTest, ACancelledRequestGivesUpItsClaimAndItsLateStreamIsDropped) {
  Claim claim;
  const ClaimWatch watch = claim.watch();
  const auto serial = steps_.open({.id = 1,
                                   .choices = 1,
                                   .credit = StreamReader::Credit::unlimited(),
                                   .pass = *calls_.enter(),
                                   .claim = std::move(claim)});
  EXPECT_FALSE(watch.gone());
  steps_.cancel(1);
  EXPECT_TRUE(watch.gone());
  const auto second = open(1, StreamReader::Credit::unlimited());
  auto [writer, reader] = make_token_stream(options(1));
  steps_.prepared(1, serial, std::move(reader));
  EXPECT_TRUE(writer.reader_gone());
  auto [second_writer, second_reader] = make_token_stream(options(1));
  steps_.prepared(1, second, std::move(second_reader));
  EXPECT_FALSE(second_writer.reader_gone());
}

TEST_F(StepWriterTest, ARunningIdIsRefusedAndTheRunningRequestGoesOn) {
  StreamWriter a = start(1);
  const auto room = steps_.check_room(1);
  ASSERT_FALSE(room);
  EXPECT_EQ(room.error().code, Code::kInvalidArgument);
  steps_.refuse(1, room.error());
  std::ignore = a.push(text("x"));
  EXPECT_THAT(next(), ElementsAre("1  code 3", "1 x"));
}

TEST_F(StepWriterTest, TheBoundOnRunningRequestsNamesItsFlag) {
  std::vector<StreamWriter> running;
  for (WireId id = 0; id < kMost; ++id) running.push_back(start(id));
  const auto room = steps_.check_room(kMost);
  ASSERT_FALSE(room);
  EXPECT_EQ(room.error().code, Code::kResourceExhausted);
  EXPECT_THAT(room.error().message, HasSubstr("--max-attached-requests is 3"));
  EXPECT_EQ(metrics_.attached_refused.value(), 1);
  steps_.cancel(0);
  EXPECT_TRUE(steps_.check_room(kMost));
}

TEST_F(StepWriterTest, APassGoesBackWhenTheEndIsWrittenNotWhenItIsFilled) {
  StreamWriter a = start(1);
  a.finish(text("x"), fail(Code::kInternal, "broken"));
  EXPECT_THAT(next(), ElementsAre("1 x code 13"));
  EXPECT_EQ(calls_.count(), 1);
  steps_.written();
  EXPECT_EQ(calls_.count(), 0);
}

TEST_F(StepWriterTest, ClearingDropsEveryReaderAndGivesBackEveryPass) {
  StreamWriter a = start(1);
  StreamWriter b = start(2, {});
  steps_.cancel(2);
  steps_.clear();
  EXPECT_TRUE(a.reader_gone());
  EXPECT_TRUE(b.reader_gone());
  EXPECT_EQ(calls_.count(), 0);
  EXPECT_EQ(metrics_.attached_requests.value(), 0);
  EXPECT_THAT(next(), IsEmpty());
}

TEST_F(StepWriterTest, ABatchStopsGrowingAndTheRestComesInTheNext) {
  StreamWriter a = start(1);
  StreamWriter b = start(2);
  std::ignore = a.push(text(std::string(kStepBatchBytes, 'x')));
  std::ignore = b.push(text("y"));
  EXPECT_EQ(next().size(), 1);
  EXPECT_THAT(next(), ElementsAre("2 y"));
}

TEST_F(StepWriterTest, EndingsBeyondABatchGoIntoTheNext) {
  const std::string reason(1000, 'x');
  for (WireId id = 1; id <= 3000; ++id) steps_.refuse(id, {Code::kInvalidArgument, reason});
  std::size_t items = 0;
  for (std::size_t got = 0; (got = next().size()) > 0; items += got)
    EXPECT_LE(got, kStepBatchBytes / reason.size() + 1);
  EXPECT_EQ(items, 3000U);
  EXPECT_TRUE(steps_.idle());
}

}  // namespace
}  // namespace sluice
