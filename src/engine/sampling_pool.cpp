#include "engine/sampling_pool.h"

#include <algorithm>

#include "base/check.h"

namespace sluice {
namespace {

// Fewer items than this for each thread are not worth waking it.
constexpr std::size_t kItemsPerThread = 2;

}  // namespace

SamplingPool::SamplingPool(std::size_t threads) {
  CHECK(threads >= 1, "the caller is one of them");
  for (std::size_t thread = 1; thread < threads; ++thread) {
    workers_.emplace_back([this, thread]() noexcept { work(thread); });
  }
}

SamplingPool::~SamplingPool() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void SamplingPool::run(std::size_t items, const Job& job) {
  next_item_ = 0;
  if (workers_.empty() || items < 2 * kItemsPerThread) {
    take_items(job, items, 0);
    return;
  }
  {
    const MutexLock lock(mutex_);
    job_ = &job;
    items_ = items;
    working_ = workers_.size();
    ++round_;
  }
  changed_.notify_all();
  take_items(job, items, 0);
  const MutexLock lock(mutex_);
  while (working_ > 0) changed_.wait(mutex_);
}

void SamplingPool::work(std::size_t thread) noexcept {
  std::uint64_t last_round = 0;
  while (true) {
    const Job* job = nullptr;
    std::size_t items = 0;
    {
      const MutexLock lock(mutex_);
      while (round_ == last_round && !stopping_) changed_.wait(mutex_);
      if (stopping_) return;
      last_round = round_;
      job = job_;
      items = items_;
    }
    take_items(*job, items, thread);
    {
      const MutexLock lock(mutex_);
      --working_;
    }
    changed_.notify_all();
  }
}

void SamplingPool::take_items(const Job& job, std::size_t items, std::size_t thread) {
  while (true) {
    const std::size_t item = next_item_.fetch_add(1, std::memory_order_relaxed);
    if (item >= items) return;
    job(item, thread);
  }
}

}  // namespace sluice
