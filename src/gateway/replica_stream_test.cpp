#include "gateway/replica_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "gateway/stream_core.h"
#include "gateway/test_reading.h"
// behind asio.h
#include <boost/asio/co_spawn.hpp>

namespace sluice {
namespace {

GatewayLimits limits() {
  GatewayLimits limits;
  limits.credit_deltas = 4;
  limits.credit_bytes = 100;
  return limits;
}

ReceivedDelta delta(std::size_t bytes) {
  ReceivedDelta received;
  received.delta.bytes.assign(bytes, 'x');
  return received;
}

class ReplicaStreamTest : public testing::Test {
 protected:
  ReplicaStreamTest() {
    core_->connect({.grant = [this](StreamCredit more) { granted_.push_back(more); },
                    .cancel = [this] { ++cancels_; }});
  }

  void read() {
    asio::co_spawn(
        io_, next_arrival(stream_, reader_),
        [this](std::exception_ptr, Arrival arrival) { arrivals_.push_back(std::move(arrival)); });
    turn();
  }
  void turn() {
    io_.poll();
    io_.restart();
  }

  Metrics metrics_;
  ManualClock clock_;
  ReplicaTable table_{PoolPolicy::kLeastLoad, limits(), clock_, metrics_};
  asio::io_context io_;
  WakeUp reader_;
  std::shared_ptr<ReplicaStream::Core> core_ =
      std::make_shared<ReplicaStream::Core>(limits(), Attempt(table_, ReplicaId{1}), reader_);
  ReplicaStream stream_{core_};
  std::vector<StreamCredit> granted_;
  std::vector<Arrival> arrivals_;
  int cancels_ = 0;
};

TEST_F(ReplicaStreamTest, AReaderWaitsAndThenTakesAllThatIsThere) {
  read();
  EXPECT_TRUE(arrivals_.empty());
  core_->deliver(delta(1));
  core_->deliver(delta(2));
  turn();
  EXPECT_TRUE(arrivals_.empty());
  core_->wake();
  turn();
  ASSERT_EQ(arrivals_.size(), 1U);
  EXPECT_EQ(arrivals_[0].deltas.size(), 2U);
  EXPECT_FALSE(arrivals_[0].end);
}

TEST_F(ReplicaStreamTest, TheEndComesWithTheLastDeltas) {
  core_->deliver(delta(1));
  core_->end({});
  read();
  ASSERT_EQ(arrivals_.size(), 1U);
  EXPECT_EQ(arrivals_[0].deltas.size(), 1U);
  ASSERT_TRUE(arrivals_[0].end);
  EXPECT_TRUE(*arrivals_[0].end);
}

TEST_F(ReplicaStreamTest, CreditIsGrantedWhenHalfOfItWasTakenAndTheReaderComesAgain) {
  core_->deliver(delta(1));
  read();
  core_->deliver(delta(1));
  read();
  EXPECT_TRUE(granted_.empty());  // one had been taken when it came
  core_->deliver(delta(1));
  read();
  ASSERT_EQ(granted_.size(), 1U);
  EXPECT_EQ(granted_[0].deltas, 2U);
  EXPECT_EQ(granted_[0].bytes, 2U);
  EXPECT_EQ(core_->credit().deltas, 3U);
}

TEST_F(ReplicaStreamTest, FewLongDeltasBringNewCreditToo) {
  core_->deliver(delta(60));
  read();
  read();
  ASSERT_EQ(granted_.size(), 1U);
  EXPECT_EQ(granted_[0].bytes, 60U);
}

TEST_F(ReplicaStreamTest, WithoutAReaderTheCreditRunsOut) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(core_->covers(delta(1)));
    core_->deliver(delta(1));
  }
  EXPECT_FALSE(core_->has_credit());
  EXPECT_FALSE(core_->covers(delta(0)));
  EXPECT_TRUE(granted_.empty());
}

TEST_F(ReplicaStreamTest, CreditCoversWhatTheContractSays) {
  EXPECT_TRUE(core_->covers(delta(100)));
  EXPECT_FALSE(core_->covers(delta(101)));
  ReceivedDelta whole = delta(101);
  whole.delta.logprobs.emplace_back();
  EXPECT_TRUE(core_->covers(whole));  // such a delta is not split
  core_->deliver(delta(100));
  EXPECT_FALSE(core_->covers(whole));
}

TEST_F(ReplicaStreamTest, DroppedUnfinishedItCancelsOnce) {
  { const ReplicaStream dropped = std::move(stream_); }
  EXPECT_EQ(cancels_, 1);
}

TEST_F(ReplicaStreamTest, DroppedAfterTheEndItCancelsNothing) {
  core_->end({});
  { const ReplicaStream dropped = std::move(stream_); }
  EXPECT_EQ(cancels_, 0);
}

}  // namespace
}  // namespace sluice
