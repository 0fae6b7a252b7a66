#include "scheduler/fair_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/loop_bench.h"
#include "scheduler/sequence.h"

namespace sluice {
namespace {

// Requests of the queue by hand: each has a prompt of ten tokens and a name.
class FairQueueTest : public testing::Test {
 public:
  ~FairQueueTest() override {
    for (Entry& entry : entries_) {
      if (!entry.gone) finish(entry);
    }
  }

 protected:
  struct Entry {
    std::string name;
    std::unique_ptr<Request> request;
    bool gone = false;
  };

  void ask(const std::string& name, const std::string& flow, std::int32_t priority = 0) {
    readers_.push_back(bench_.ask({.prompt = "nine byte", .priority = priority, .flow = flow}));
    std::vector<Admission::Admitted> admitted;
    bench_.admission.take_submitted(admitted);
    FairQueue::Flow& its_flow = queue_.join(flow);
    entries_.push_back(
        {name, std::make_unique<Request>(std::move(admitted.front()), ++arrivals_, its_flow)});
    queue_.add(its_flow, key(entries_.back()), entries_.back().request->choices.front());
  }

  // Gives the next one in the queue a slot, and lets it be served `tokens`.
  std::string start(std::uint64_t tokens) {
    Sequence* const sequence = FairQueue::Walk(queue_).next();
    if (sequence == nullptr) return "none";
    for (Entry& entry : entries_) {
      if (entry.request.get() != sequence->request) continue;
      queue_.remove(*entry.request->flow, key(entry));
      entry.request->flow->served += tokens;
      return entry.name;
    }
    return "stranger";
  }

  void finish(const std::string& name) {
    for (Entry& entry : entries_) {
      if (entry.name == name) finish(entry);
    }
  }

  std::string walk() {
    std::string names;
    FairQueue::Walk order(queue_);
    while (const Sequence* const sequence = order.next()) {
      for (const Entry& entry : entries_) {
        if (entry.request.get() == sequence->request) names += concat(entry.name, ' ');
      }
    }
    return names;
  }

 private:
  static FairQueue::Key key(const Entry& entry) {
    return {-entry.request->priority, entry.request->arrival, 0};
  }

  void finish(Entry& entry) {
    queue_.remove(*entry.request->flow, key(entry));
    queue_.leave(*entry.request->flow);
    entry.gone = true;
  }

  LoopBench bench_;
  FairQueue queue_;
  std::uint64_t arrivals_ = 0;
  std::vector<StreamReader> readers_;
  std::vector<Entry> entries_;
};

TEST_F(FairQueueTest, OfOneFlowThoseThatCameFirstAreFirst) {
  for (const char* name : {"a", "b", "c"}) ask(name, "");
  EXPECT_EQ(walk(), "a b c ");
}

TEST_F(FairQueueTest, AClientWithManyTakesTurnsWithOneThatHasOne) {
  for (const char* name : {"m1", "m2", "m3", "m4"}) ask(name, "many");
  EXPECT_EQ(start(10), "m1");
  ask("one", "single");
  EXPECT_EQ(start(10), "m2");  // it came first, and both flows begin level
  EXPECT_EQ(start(10), "one");
  EXPECT_EQ(start(10), "m3");
}

TEST_F(FairQueueTest, AWalkCountsWhatItHasMetAsServed) {
  for (const char* name : {"a1", "a2", "a3"}) ask(name, "a");
  for (const char* name : {"b1", "b2", "b3"}) ask(name, "b");
  EXPECT_EQ(walk(), "a1 b1 a2 b2 a3 b3 ");
}

TEST_F(FairQueueTest, WhoIsServedMoreWaitsForTheOthersToCatchUp) {
  for (const char* name : {"long1", "long2"}) ask(name, "long");
  for (const char* name : {"s1", "s2", "s3", "s4"}) ask(name, "short");
  EXPECT_EQ(start(35), "long1");
  EXPECT_EQ(start(10), "s1");
  EXPECT_EQ(start(10), "s2");
  EXPECT_EQ(start(10), "s3");
  EXPECT_EQ(start(10), "s4");
  EXPECT_EQ(start(10), "long2");
}

TEST_F(FairQueueTest, APriorityGoesBeforeFairness) {
  ask("low", "a");
  ask("high1", "b", 1);
  ask("high2", "b", 1);
  EXPECT_EQ(walk(), "high1 high2 low ");
}

TEST_F(FairQueueTest, WhoWasAwayHasNothingSavedUp) {
  for (const char* name : {"a1", "a2", "a3", "a4"}) ask(name, "a");
  EXPECT_EQ(start(100), "a1");
  EXPECT_EQ(start(100), "a2");
  for (const char* name : {"b1", "b2"}) ask(name, "b");
  EXPECT_EQ(start(10), "a3");
  EXPECT_EQ(start(10), "b1");
  EXPECT_EQ(start(10), "a4");
}

TEST_F(FairQueueTest, WhoComesToAnEmptyQueueBeginsWhereTheLastOneStood) {
  ask("a1", "a");
  EXPECT_EQ(start(100), "a1");
  ask("b1", "b");
  EXPECT_EQ(start(10), "b1");
  finish("b1");
  ask("b2", "b");
  ask("a2", "a");
  EXPECT_EQ(walk(), "b2 a2 ");
}

}  // namespace
}  // namespace sluice
