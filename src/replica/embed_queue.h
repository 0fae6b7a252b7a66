// EmbedQueue: one thread that computes embeddings beside the engine's loop, one call after the
// other. Bounded by Limits::max_queued_embeds calls; at the bound a call is refused with
// kResourceExhausted. A call whose claim is gone is skipped, or stopped within its forward pass; so
// is one whose deadline passes, with kDeadlineExceeded. Thread: submit any; `done` runs on the
// queue's thread and must not block.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "contract/limits.h"
#include "contract/validate.h"
#include "replica/claim.h"

namespace sluice {

class Engine;
struct ReplicaMetrics;

struct Embeddings {
  std::vector<std::vector<float>> vectors;  // one for each input, in order
  std::uint32_t prompt_tokens = 0;          // of all inputs
};

class EmbedQueue {
 public:
  struct Job {
    std::vector<std::string> inputs;  // validated texts
    TimePoint deadline = kForever;
    ClaimWatch claim;
    std::function<void(Result<Embeddings>)> done;
  };

  // All references outlive it.
  EmbedQueue(Engine& engine, Clock& clock, const Limits& limits, const ServedModel& model,
             ReplicaMetrics& metrics);
  // Stops the running call and drops what waits.
  ~EmbedQueue();
  EmbedQueue(const EmbedQueue&) = delete;
  EmbedQueue& operator=(const EmbedQueue&) = delete;

  // After an error, `done` is never called.
  [[nodiscard]] Result<void> submit(Job job) EXCLUDES(mutex_);

 private:
  void run() noexcept EXCLUDES(mutex_);
  void serve(Job& job);
  [[nodiscard]] Result<Embeddings> embed(Job& job);

  Engine& engine_;
  Clock& clock_;
  const std::uint32_t max_queued_;
  const ServedModel model_;
  ReplicaMetrics& metrics_;

  std::atomic<bool> stopping_ = false;
  Mutex mutex_;
  CondVar submitted_;
  std::deque<Job> queue_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace sluice
