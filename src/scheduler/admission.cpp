#include "scheduler/admission.h"

#include "base/check.h"
#include "base/concat.h"

namespace sluice {
namespace {

// What a client is told to wait when the queue is full: about the time in which a busy replica
// finishes a few answers.
constexpr std::chrono::milliseconds kRetryAfter{1000};

Error draining() {
  return {Code::kUnavailable, "the server is shutting down and takes no new requests"};
}

}  // namespace

Admission::Ticket& Admission::Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    give_back();
    admission_ = std::exchange(other.admission_, nullptr);
    requests_ = other.requests_;
    tokens_ = other.tokens_;
  }
  return *this;
}

void Admission::Ticket::give_back() noexcept {
  Admission* const admission = std::exchange(admission_, nullptr);
  if (admission == nullptr) return;
  MutexLock lock(admission->mutex_);
  admission->waiting_requests_ -= requests_;
  admission->waiting_tokens_ -= tokens_;
  admission->queued_requests_.set(admission->waiting_requests_);
  admission->queued_prompt_tokens_.set(static_cast<double>(admission->waiting_tokens_));
}

Admission::Admission(const Limits& limits, Clock& clock, Doorbell& doorbell, Metrics& metrics)
    : limits_(limits),
      clock_(clock),
      doorbell_(doorbell),
      refused_(metrics.counter("sluice_admission_refused_total",
                               "Requests refused because a bound of the queue was reached")),
      queued_requests_(
          metrics.gauge("sluice_queued_requests", "Choices admitted and not yet in the batch")),
      queued_prompt_tokens_(
          metrics.gauge("sluice_queued_prompt_tokens", "Prompt tokens of the queued requests")) {
  metrics.gauge("sluice_queued_requests_limit", "--max-queued-requests")
      .set(limits.max_queued_requests);
  metrics.gauge("sluice_queued_prompt_tokens_limit", "--max-queued-prompt-tokens")
      .set(static_cast<double>(limits.max_queued_prompt_tokens));
}

Error Admission::refusal(const std::string& what) const {
  return {Code::kResourceExhausted, concat("the queue is full: ", what), kRetryAfter};
}

Result<Admission::Ticket> Admission::reserve(std::uint32_t choices) {
  MutexLock lock(mutex_);
  if (closed_) return tl::unexpected(draining());
  if (waiting_requests_ + choices > limits_.max_queued_requests) {
    refused_.add();
    return tl::unexpected(
        refusal(concat(waiting_requests_, " requests wait, and --max-queued-requests is ",
                       limits_.max_queued_requests)));
  }
  waiting_requests_ += choices;
  queued_requests_.set(waiting_requests_);
  return Ticket(this, choices);
}

Result<StreamReader> Admission::submit(Ticket ticket, Submission submission) {
  CHECK(!submission.prompt.empty() && !submission.samplers.empty(),
        "a submission is tokenised and has a choice");
  const TimePoint now = clock_.now();
  if (now >= submission.deadline)
    return fail(Code::kDeadlineExceeded, "the deadline passed before the request was queued");
  const auto tokens = static_cast<std::uint64_t>(submission.prompt.size());
  std::optional<StreamReader> reader;
  // The ticket of a refused request is given back only when the lock is free again.
  {
    MutexLock lock(mutex_);
    if (closed_) return tl::unexpected(draining());
    if (waiting_tokens_ + tokens > limits_.max_queued_prompt_tokens) {
      refused_.add();
      return tl::unexpected(refusal(concat(waiting_tokens_, " prompt tokens wait, the request has ",
                                           tokens, ", and --max-queued-prompt-tokens is ",
                                           limits_.max_queued_prompt_tokens)));
    }
    waiting_tokens_ += tokens;
    queued_prompt_tokens_.set(static_cast<double>(waiting_tokens_));
    ticket.tokens_ = tokens;
    const RequestId id{++last_id_};
    auto [writer, made] = make_token_stream({.id = id,
                                             .prompt_tokens = static_cast<std::uint32_t>(tokens),
                                             .max_deltas = limits_.stream_deltas,
                                             .max_bytes = limits_.stream_bytes,
                                             .wire_id = submission.wire_id,
                                             .wire = submission.wire,
                                             .doorbell = &doorbell_,
                                             .clock = &clock_});
    reader.emplace(std::move(made));
    submitted_.push_back({id, std::move(submission), std::move(writer), std::move(ticket), now});
  }
  doorbell_.ring();
  return std::move(*reader);
}

void Admission::close() noexcept {
  MutexLock lock(mutex_);
  closed_ = true;
}

bool Admission::closed() const noexcept {
  MutexLock lock(mutex_);
  return closed_;
}

Load Admission::load() const noexcept {
  MutexLock lock(mutex_);
  Load load = load_;
  load.waiting = waiting_requests_;
  load.draining = closed_;
  return load;
}

void Admission::take_submitted(std::vector<Admitted>& out) noexcept {
  out.clear();
  MutexLock lock(mutex_);
  std::swap(out, submitted_);
}

void Admission::set_load(const Load& load) noexcept {
  MutexLock lock(mutex_);
  load_ = load;
}

}  // namespace sluice
