#include "load/load_recorder.h"

#include <algorithm>
#include <limits>

namespace sluice {
namespace {

Duration per_token(const LoadTimes& times) noexcept {
  return (times.last - times.first) / std::max<Duration::rep>(1, times.tokens - 1);
}

bool exceeds(Duration time, double target_ms) noexcept {
  return target_ms > 0 && std::chrono::duration<double, std::milli>(time).count() > target_ms;
}

}  // namespace

void LoadCounts::add(const LoadCounts& other) {
  ttft.add(other.ttft);
  itl.add(other.itl);
  tpot.add(other.tpot);
  total.add(other.total);
  queue.add(other.queue);
  lateness.add(other.lateness);
  succeeded += other.succeeded;
  good += other.good;
  failed += other.failed;
  cancelled += other.cancelled;
  unfinished += other.unfinished;
  slow += other.slow;
  not_started += other.not_started;
  prompt_tokens += other.prompt_tokens;
  cached_tokens += other.cached_tokens;
  completion_tokens += other.completion_tokens;
  tokens += other.tokens;
  messages += other.messages;
  for (const auto& [error, times] : other.errors) errors[error] += times;
}

LoadRecorder::LoadRecorder(const LoadTargets& targets, TimePoint start)
    : targets_(targets),
      begin_(std::numeric_limits<Duration::rep>::max()),
      end_(std::numeric_limits<Duration::rep>::max()),
      parts_(std::make_unique<std::array<Part, kParts>>()),
      timeline_(start) {}

bool LoadRecorder::in_window(TimePoint now) const noexcept {
  const Duration::rep at = now.time_since_epoch().count();
  return at >= begin_ && at < end_;
}

void LoadRecorder::received(std::size_t stream, const LoadTimes& times, std::uint32_t tokens,
                            TimePoint before) noexcept {
  Part& part = (*parts_)[stream % kParts];
  const MutexLock lock(part.mutex);
  if (in_window(times.last)) {
    part.counts.tokens += tokens;
    ++part.counts.messages;
  }
  part.interval.tokens += tokens;
  if (before == kForever) {
    const Duration ttft = times.last - times.intended;
    part.interval.ttft.record(ttft);
    if (times.counted) part.counts.ttft.record(ttft);
  } else if (!times.slow) {  // whose gaps are its own doing
    part.interval.itl.record(times.last - before);
    // Long streams that began in the warm-up have gaps that count.
    if (times.counted || in_window(times.last)) part.counts.itl.record(times.last - before);
  }
}

bool LoadRecorder::is_good(const LoadTimes& times) const noexcept {
  return times.tokens > 0 && !exceeds(times.first - times.intended, targets_.ttft_ms) &&
         (times.slow || !exceeds(per_token(times), targets_.itl_ms));
}

void LoadRecorder::count_success(const LoadTimes& times, const LoadOutcome& outcome,
                                 LoadCounts& counts) const noexcept {
  ++counts.succeeded;
  if (is_good(times)) ++counts.good;
  if (times.slow) {
    ++counts.slow;
  } else {
    counts.total.record(times.ended - times.intended);
    if (times.tokens > 1) counts.tpot.record(per_token(times));
  }
  if (outcome.queued) counts.queue.record(*outcome.queued);
  counts.prompt_tokens += outcome.prompt_tokens;
  counts.cached_tokens += outcome.cached_tokens;
  counts.completion_tokens += outcome.completion_tokens.value_or(times.tokens);
}

void LoadRecorder::count_error(const std::string& error,
                               std::map<std::string, std::uint64_t>& errors) {
  const bool room = errors.size() < kMostErrors || errors.contains(error);
  ++errors[room ? error : "other"];
}

void LoadRecorder::ended(std::size_t stream, const LoadTimes& times,
                         const LoadOutcome& outcome) noexcept {
  Part& part = (*parts_)[stream % kParts];
  const MutexLock lock(part.mutex);
  const bool ended_by_us = times.cancelled || times.cut;
  ++part.interval.ended;
  if (!outcome.error.empty() && !ended_by_us) ++part.interval.failed;
  if (!times.counted) return;
  LoadCounts& counts = part.counts;
  counts.lateness.record(times.begun - times.intended);
  if (times.cut) {
    // It took at least this long: to leave it out would hide just the slowest.
    ++counts.unfinished;
    if (times.tokens == 0) counts.ttft.record(times.ended - times.intended);
    if (!times.slow) counts.total.record(times.ended - times.intended);
  } else if (times.cancelled) {
    ++counts.cancelled;
  } else if (outcome.error.empty()) {
    count_success(times, outcome, counts);
  } else {
    ++counts.failed;
    count_error(outcome.error, counts.errors);
  }
}

void LoadRecorder::not_started(TimePoint intended, TimePoint now, bool counted) noexcept {
  if (!counted) return;
  Part& part = (*parts_)[0];
  const MutexLock lock(part.mutex);
  ++part.counts.not_started;
  part.counts.lateness.record(now - intended);
  part.counts.ttft.record(now - intended);
  part.counts.total.record(now - intended);
}

void LoadRecorder::tick(TimePoint now, std::size_t running) {
  TimelineInterval interval;
  for (Part& part : *parts_) {
    const MutexLock lock(part.mutex);
    interval.add(part.interval);
    part.interval.clear();
  }
  interval.running = running;
  timeline_.close_interval(now, interval);
}

LoadCounts LoadRecorder::counts() const {
  LoadCounts sum;
  for (Part& part : *parts_) {
    const MutexLock lock(part.mutex);
    sum.add(part.counts);
  }
  return sum;
}

}  // namespace sluice
