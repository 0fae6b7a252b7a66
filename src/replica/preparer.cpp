#include "replica/preparer.h"

#include <string>
#include <utility>

#include "engine/engine.h"
#include "replica/replica_metrics.h"

namespace sluice {
namespace {

// Who is served in turn with others: the tenant, where keep_apart or a gateway has named one, else
// the session.
std::string flow_of(const GenerationRequest& request) {
  const std::string& salt = request.cache.salt;
  const auto end = salt.find('\n');
  return end == std::string::npos || end == 0 ? request.session_id : salt.substr(0, end);
}

}  // namespace

Preparer::Preparer(const Engine& engine, Admission& admission, Clock& clock,
                   const ServedModel& model, ReplicaMetrics& metrics, std::uint32_t threads)
    : engine_(engine), admission_(admission), clock_(clock), model_(model), metrics_(metrics) {
  for (std::uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this]() noexcept { run(); });
}

Preparer::~Preparer() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    submitted_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void Preparer::submit(GenerationPreparation job) { enqueue(std::move(job)); }

void Preparer::submit(CountPreparation job) { enqueue(std::move(job)); }

void Preparer::enqueue(Job job) {
  metrics_.preparing.add(1);
  MutexLock lock(mutex_);
  queue_.push_back(std::move(job));
  submitted_.notify_one();
}

void Preparer::run() noexcept {
  for (;;) {
    std::optional<Job> job;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) submitted_.wait(mutex_);
      if (stopping_) return;
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    std::visit([this](auto& preparation) { prepare(preparation); }, *job);
    metrics_.preparing.add(-1);
  }
}

template <typename Input, typename Output>
void Preparer::prepare(Preparation<Input, Output>& job) {
  if (job.claim.gone()) {
    metrics_.prepare_skipped.add();
    return;
  }
  if (clock_.now() >= job.deadline) {
    metrics_.prepare_skipped.add();
    job.done(fail(Code::kDeadlineExceeded,
                  "the deadline passed while the request waited to be tokenised"));
    return;
  }
  job.done(make(job));
}

Result<StreamReader> Preparer::make(GenerationPreparation& job) {
  GenerationRequest& request = job.input.request;
  auto prompt = engine_.tokenize(request.prompt);
  if (!prompt) return tl::unexpected(std::move(prompt.error()));
  if (auto fits = validate_prompt_tokens(prompt->size(), model_); !fits)
    return tl::unexpected(std::move(fits.error()));
  request.prompt = {};

  Submission submission;
  for (std::int32_t choice = 0; choice < request.n; ++choice) {
    submission.samplers.push_back(
        engine_.make_sampler(request.sampling, static_cast<std::uint32_t>(choice), *prompt));
  }
  submission.prompt = std::move(*prompt);
  submission.stopping = std::move(request.stopping);
  submission.flow = flow_of(request);
  submission.caching = {.scope = std::move(request.cache.salt),
                        .read = !request.cache.no_cache,
                        .store = !request.cache.no_store};
  submission.priority = request.priority;
  submission.deadline = job.deadline;
  submission.wire_id = job.input.wire_id;
  submission.wire = std::move(job.input.wire);
  return admission_.submit(std::move(job.ticket), std::move(submission));
}

Result<std::uint32_t> Preparer::make(CountPreparation& job) {
  const auto tokens = engine_.tokenize(job.input);
  if (!tokens) return tl::unexpected(tokens.error());
  return static_cast<std::uint32_t>(tokens->size());
}

}  // namespace sluice
