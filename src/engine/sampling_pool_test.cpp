#include "engine/sampling_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace sluice {
namespace {

TEST(SamplingPool, DoesEachItemOnceInEachOfManyRounds) {
  SamplingPool pool(3);
  for (std::size_t items = 0; items < 200; ++items) {
    std::vector<std::atomic<int>> done(items);
    pool.run(items, [&](std::size_t item, std::size_t) { ++done[item]; });
    for (const auto& times : done) ASSERT_EQ(times, 1);
  }
}

TEST(SamplingPool, GivesEachThreadANumberOfItsOwn) {
  SamplingPool pool(3);
  std::vector<std::atomic<int>> inside(pool.threads());
  std::atomic<bool> shared = false;
  pool.run(1000, [&](std::size_t, std::size_t thread) {
    if (++inside[thread] > 1) shared = true;
    --inside[thread];
  });
  EXPECT_FALSE(shared);
}

TEST(SamplingPool, DoesFewItemsOnTheCallersThread) {
  SamplingPool pool(4);
  const auto caller = std::this_thread::get_id();
  pool.run(3, [&](std::size_t, std::size_t thread) {
    EXPECT_EQ(thread, 0U);
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
}

TEST(SamplingPool, OfOneThreadStartsNone) {
  SamplingPool pool(1);
  EXPECT_EQ(pool.threads(), 1U);
  std::size_t done = 0;
  pool.run(100, [&](std::size_t, std::size_t) { ++done; });
  EXPECT_EQ(done, 100U);
}

}  // namespace
}  // namespace sluice
