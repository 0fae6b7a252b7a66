#include "replica/embed_queue.h"

#include <optional>
#include <utility>

#include "base/concat.h"
#include "engine/engine.h"
#include "replica/replica_metrics.h"

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kRetryAfter{1000};

Error expired() {
  return {Code::kDeadlineExceeded, "the deadline passed before all inputs were embedded"};
}

}  // namespace

EmbedQueue::EmbedQueue(Engine& engine, Clock& clock, const Limits& limits, const ServedModel& model,
                       ReplicaMetrics& metrics)
    : engine_(engine),
      clock_(clock),
      max_queued_(limits.max_queued_embeds),
      model_(model),
      metrics_(metrics),
      thread_([this]() noexcept { run(); }) {}

EmbedQueue::~EmbedQueue() {
  stopping_ = true;
  {
    MutexLock lock(mutex_);
    submitted_.notify_one();
  }
  thread_.join();
}

Result<void> EmbedQueue::submit(Job job) {
  MutexLock lock(mutex_);
  if (queue_.size() >= max_queued_) {
    metrics_.embeds_refused.add();
    return tl::unexpected(
        Error{Code::kResourceExhausted,
              concat("too many Embed calls wait: ", queue_.size(), " (--max-queued-embeds)"),
              kRetryAfter});
  }
  queue_.push_back(std::move(job));
  metrics_.embeds_queued.add(1);
  submitted_.notify_one();
  return {};
}

void EmbedQueue::run() noexcept {
  for (;;) {
    std::optional<Job> job;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) submitted_.wait(mutex_);
      if (stopping_) return;
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    metrics_.embeds_queued.add(-1);
    serve(*job);
  }
}

void EmbedQueue::serve(Job& job) {
  if (job.claim.gone()) return;
  auto embeddings = embed(job);
  // An aborted pass says kCancelled; why it was aborted is known here.
  if (!embeddings && embeddings.error().code == Code::kCancelled && clock_.now() >= job.deadline)
    embeddings.error() = expired();
  job.done(std::move(embeddings));
}

Result<Embeddings> EmbedQueue::embed(Job& job) {
  const AbortCheck abort = [this, &job] {
    return stopping_ || job.claim.gone() || clock_.now() >= job.deadline;
  };
  Embeddings out;
  for (std::size_t i = 0; i < job.inputs.size(); ++i) {
    if (clock_.now() >= job.deadline) return tl::unexpected(expired());
    PromptSource source;
    source.raw = std::move(job.inputs[i]);
    const auto tokens = engine_.tokenize(source);
    if (!tokens) return tl::unexpected(tokens.error());
    if (tokens->size() > model_.context_tokens) {
      return invalid(concat("inputs[", i, "] has ", tokens->size(),
                            " tokens; the model's context holds ", model_.context_tokens));
    }
    auto vector = engine_.embed(*tokens, abort);
    if (!vector) return tl::unexpected(std::move(vector.error()));
    out.vectors.push_back(std::move(*vector));
    out.prompt_tokens += static_cast<std::uint32_t>(tokens->size());
  }
  return out;
}

}  // namespace sluice
