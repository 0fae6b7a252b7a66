#include "gateway/replica_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class ReplicaTableLog : public testing::Test {
 protected:
  // What `change` makes the log say.
  template <typename Change>
  std::string said(Change change) {
    testing::internal::CaptureStderr();
    change();
    return testing::internal::GetCapturedStderr();
  }
  void serve() {
    table_.set_description(replica_, {});
    table_.set_serving(replica_);
  }
  void fail_once() {
    table_.began(replica_);
    table_.ended(replica_, fail(Code::kInternal, "secret"));
  }

  ManualClock clock_;
  Metrics metrics_;
  GatewayLimits limits_;
  ReplicaTable table_{PoolPolicy::kAffinity, limits_, clock_, metrics_};
  ReplicaId replica_ = table_.add({.name = "one", .labels = {"one", "10.0.0.1:5"}}, nullptr, "one");
};

TEST_F(ReplicaTableLog, ComingAndGoingAreALineEachWithTheAddressAndWhy) {
  EXPECT_THAT(said([&] { serve(); }), HasSubstr("replica one (10.0.0.1:5) takes requests"));
  EXPECT_THAT(said([&] { table_.set_serving(replica_); }), IsEmpty());
  EXPECT_THAT(said([&] { table_.set_not_serving(replica_, {.why = "Socket closed"}); }),
              AllOf(HasSubstr("warn"), HasSubstr("10.0.0.1:5"),
                    HasSubstr("takes no requests any more: Socket closed")));
  EXPECT_THAT(said([&] { table_.set_not_serving(replica_, {.why = "again"}); }), IsEmpty());
  EXPECT_THAT(said([&] { serve(); }), HasSubstr("takes requests"));
}

TEST_F(ReplicaTableLog, OneThatWasNeverThereIsALine) {
  const auto refused = [&] { table_.set_not_serving(replica_, {.why = "Connection refused"}); };
  EXPECT_THAT(said(refused), HasSubstr("can't be used yet: Connection refused"));
  EXPECT_THAT(said(refused), IsEmpty());
  EXPECT_THAT(said([&] { table_.remove(replica_); }), IsEmpty());
}

TEST_F(ReplicaTableLog, ADrainIsNoWarning) {
  serve();
  EXPECT_THAT(said([&] { table_.set_load(replica_, {.draining = true}); }),
              AllOf(HasSubstr("info"), HasSubstr("it drains")));
}

TEST_F(ReplicaTableLog, BeingLeftAloneIsALineUntilItAnswersAgain) {
  serve();
  const std::string ejected = said([&] {
    for (int request = 0; request < 5; ++request) fail_once();
  });
  EXPECT_THAT(ejected, AllOf(HasSubstr("warn"), HasSubstr("10.0.0.1:5"), HasSubstr("INTERNAL")));
  EXPECT_EQ(std::count(ejected.begin(), ejected.end(), '\n'), 1);
  EXPECT_EQ(ejected.find("secret"), std::string::npos);
  clock_.advance(limits_.eject_time);
  EXPECT_THAT(said([&] {
                ASSERT_TRUE(table_.choose({.models = {"m"}}, {}));
                fail_once();
              }),
              IsEmpty());
  EXPECT_THAT(said([&] {
                table_.began(replica_);
                table_.ended(replica_, {});
              }),
              HasSubstr("replica one (10.0.0.1:5) answers again"));
}

}  // namespace
}  // namespace sluice
