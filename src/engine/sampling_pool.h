// SamplingPool: spreads the sampling of a step's rows over a few threads, the caller among them.
// Bounded by its threads, fixed at the start; they wait on a condition between steps. Few items run
// on the caller's thread alone, because waking a thread costs more than they do. Thread: run from
// one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace sluice {

class SamplingPool {
 public:
  // `threads` with the caller, at least 1.
  explicit SamplingPool(std::size_t threads);
  ~SamplingPool();
  SamplingPool(const SamplingPool&) = delete;
  SamplingPool& operator=(const SamplingPool&) = delete;

  // Calls job(item, thread) for each item below `items`; 0 ≤ thread < threads(). Returns when all
  // are done. `job` must not throw.
  void run(std::size_t items, const std::function<void(std::size_t item, std::size_t thread)>& job)
      EXCLUDES(mutex_);

  [[nodiscard]] std::size_t threads() const noexcept { return workers_.size() + 1; }

 private:
  using Job = std::function<void(std::size_t, std::size_t)>;

  void work(std::size_t thread) noexcept EXCLUDES(mutex_);
  void take_items(const Job& job, std::size_t items, std::size_t thread);

  std::atomic<std::size_t> next_item_ = 0;
  Mutex mutex_;
  CondVar changed_;
  const Job* job_ GUARDED_BY(mutex_) = nullptr;
  std::size_t items_ GUARDED_BY(mutex_) = 0;
  std::uint64_t round_ GUARDED_BY(mutex_) = 0;
  std::size_t working_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;
};

}  // namespace sluice
