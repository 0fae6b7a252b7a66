// Preparer: a few threads that tokenise what has been validated and submit it, so that gRPC's
// threads never wait for a long text. Bounded by what admission gave tickets for
// (Limits::max_queued_requests): every job brings one. A job whose claim is gone is skipped without
// a word; one whose deadline has passed is answered with kDeadlineExceeded; neither is tokenised.
// Thread: submit any; `done` runs on one of the preparer's threads and must not block.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "contract/generation.h"
#include "contract/validate.h"
#include "replica/claim.h"
#include "scheduler/admission.h"
#include "stream/token_stream.h"

namespace sluice {

class Engine;
struct ReplicaMetrics;

// Work that a preparer does for a call.
template <typename Input, typename Output>
struct Preparation {
  Input input;  // validated
  Admission::Ticket ticket;
  TimePoint deadline;
  ClaimWatch claim;
  std::function<void(Result<Output>)> done;
};

struct GenerationInput {
  GenerationRequest request;
  WireId wire_id = 0;
  std::shared_ptr<WireQueue> wire;
};

using GenerationPreparation =
    Preparation<GenerationInput, StreamReader>;                     // tokenise, samplers, submit
using CountPreparation = Preparation<PromptSource, std::uint32_t>;  // tokenise and count

class Preparer {
 public:
  // All references outlive it.
  Preparer(const Engine& engine, Admission& admission, Clock& clock, const ServedModel& model,
           ReplicaMetrics& metrics, std::uint32_t threads = 2);
  // Drops what waits.
  ~Preparer();
  Preparer(const Preparer&) = delete;
  Preparer& operator=(const Preparer&) = delete;

  void submit(GenerationPreparation job) EXCLUDES(mutex_);
  void submit(CountPreparation job) EXCLUDES(mutex_);

 private:
  using Job = std::variant<GenerationPreparation, CountPreparation>;

  void enqueue(Job job) EXCLUDES(mutex_);
  void run() noexcept EXCLUDES(mutex_);
  template <typename Input, typename Output>
  void prepare(Preparation<Input, Output>& job);
  [[nodiscard]] Result<StreamReader> make(GenerationPreparation& job);
  [[nodiscard]] Result<std::uint32_t> make(CountPreparation& job);

  const Engine& engine_;
  Admission& admission_;
  Clock& clock_;
  const ServedModel model_;
  ReplicaMetrics& metrics_;

  Mutex mutex_;
  CondVar submitted_;
  std::deque<Job> queue_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace sluice
