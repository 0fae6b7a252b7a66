#include "scheduler/engine_loop.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/concat.h"
#include "base/log.h"

namespace sluice {
namespace {

// While others wait for a slot, a request that has been parked for this long gives up its KV to
// them.
constexpr std::chrono::milliseconds kParkedHold{1000};
constexpr std::chrono::milliseconds kRateWindow{1000};

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

EngineLoop::EngineLoop(Engine& engine, Admission& admission, Doorbell& doorbell, Delivery& delivery,
                       Clock& clock, Metrics& metrics, const Limits& limits)
    : engine_(engine),
      admission_(admission),
      doorbell_(doorbell),
      delivery_(delivery),
      clock_(clock),
      limits_(limits),
      metrics_(metrics, limits),
      table_(engine, std::min(limits.max_sequences, engine.info().slots)),
      composer_(engine, table_, limits),
      abort_([this] { return batch_is_dead(); }) {
  now_ = clock.now();
  publish_load();
}

EngineLoop::~EngineLoop() = default;

void EngineLoop::run() noexcept {
  while (!stop_.load(std::memory_order_acquire)) {
    if (!turn()) doorbell_.wait_until(next_event());
  }
  accept();
  for (Request* request : table_.all()) {
    end(*request, metrics_.failed,
        {Code::kUnavailable,
         "the server is shutting down; the answer was not finished within --drain-grace-ms"});
  }
  table_.sweep();
  delivery_.post(touched_wires_);
  now_ = clock_.now();
  publish_load();
}

void EngineLoop::request_stop() noexcept {
  stop_.store(true, std::memory_order_release);
  doorbell_.ring();
}

bool EngineLoop::turn() noexcept {
  now_ = clock_.now();
  last_turn_.store(now_, std::memory_order_relaxed);
  // The rings first: who rang was submitted before, so accept() brings the request that reap()
  // looks for.
  doorbell_.take(rings_);
  accept();
  reap();
  expire();
  resume();
  make_room();
  table_.sweep();
  const bool something = composer_.compose();
  if (something) {
    step();
    table_.sweep();
  }
  publish_load();
  delivery_.post(touched_wires_);
  return something;
}

void EngineLoop::accept() {
  admission_.take_submitted(submitted_);
  for (auto& admitted : submitted_) refuse_if_late(table_.add(std::move(admitted)));
}

// Better now than when the time is up: the client may ask somebody else.
void EngineLoop::refuse_if_late(Request& request) {
  if (request.deadline == kForever) return;
  const auto wait = pace_.wait(table_.ahead_of(request));
  if (!wait || now_ + *wait < request.deadline) return;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(*wait);
  end(request, metrics_.late,
      {Code::kResourceExhausted,
       concat("the request's turn would come in about ", ms.count(), " ms, after its deadline"),
       ms});
}

// Whoever dropped a reader is gone: in whichever phase the request is, it ends here, before the
// next step.
void EngineLoop::reap() {
  for (const RequestId id : rings_.dropped) {
    Request* const request = table_.find(id);
    if (request == nullptr) continue;
    end(*request, metrics_.cancelled, {Code::kCancelled, "the client cancelled the request"});
    metrics_.cancel_to_free_seconds.observe(
        seconds(clock_.now() - request->writer.reader_gone_since()));
  }
}

void EngineLoop::expire() {
  for (Request* request;
       (request = table_.first_to_expire()) != nullptr && request->deadline <= now_;) {
    const bool started = request->first_row_at.has_value();
    end(*request, metrics_.expired,
        {Code::kDeadlineExceeded, started ? "the deadline passed before the answer was finished"
                                          : "the deadline passed while the request was queued"});
  }
  for (Request* request; (request = table_.longest_parked()) != nullptr &&
                         *request->parked_since + limits_.park_limit <= now_;) {
    end(*request, metrics_.not_read,
        {Code::kResourceExhausted,
         concat("client not reading: its stream was full for longer than --park-limit-ms (",
                limits_.park_limit.count(), ")")});
  }
}

void EngineLoop::resume() {
  for (const RequestId id : rings_.readable) {
    if (Request* const request = table_.find(id)) table_.resume(*request, now_);
  }
}

void EngineLoop::make_room() {
  if (table_.waiting().empty() || table_.free_slots() > 0) return;
  Request* const request = table_.longest_parked();
  if (request == nullptr || *request->parked_since + kParkedHold > now_) return;
  Sequence* const victim = table_.victim();
  if (victim == nullptr || !victim->request->parked_since) return;
  metrics_.put_back.add();
  metrics_.recomputed_tokens.add(victim->computed);
  table_.put_back(*victim);
}

void EngineLoop::step() {
  std::size_t newcomers = 0;
  for (const Sequence* sequence : composer_.rows()) {
    Request& request = *sequence->request;
    if (request.first_row_at) continue;
    request.first_row_at = now_;
    ++newcomers;
    metrics_.prompt_tokens.add(request.prompt_tokens);
    metrics_.cached_prompt_tokens.add(request.cached_tokens);
    metrics_.queue_seconds.observe(seconds(now_ - request.admitted_at));
  }
  pace_.step(now_, newcomers, table_.waiting().size());
  live_row_ = 0;
  engine_.step(composer_.batch(), abort_, result_);
  const TimePoint started = std::exchange(now_, clock_.now());
  metrics_.steps.add();
  metrics_.step_seconds.observe(seconds(now_ - started));
  switch (result_.status) {
    case StepStatus::kDone:
      metrics_.decode_rows.add(composer_.decode_rows());
      metrics_.prefill_rows.add(composer_.prefill_rows());
      composer_.observe(now_ - started);
      deliver();
      break;
    case StepStatus::kNoKvSpace:
      out_of_kv();
      break;
    case StepStatus::kAborted:
      metrics_.aborted_steps.add();
      put_back_batch();
      break;
    case StepStatus::kFailed:
      metrics_.failed_steps.add();
      log_error("engine", concat("a forward pass failed: ", result_.message));
      for (const Sequence* sequence : composer_.rows()) {
        if (sequence->state != Sequence::State::kDone)
          end_failed(*sequence->request, result_.message);
      }
      break;
  }
}

void EngineLoop::deliver() {
  const auto& rows = composer_.rows();
  const auto& work = composer_.batch().work;
  // All rows first: delivering one may park or end the other choices of its request.
  for (std::size_t i = 0, next = 0; i < rows.size(); ++i) {
    const bool pending = work[i].sample && result_.sampled[next++].kind == Sampled::Kind::kPending;
    // What is pending is computed again, with the same last token.
    rows[i]->computed += static_cast<std::int32_t>(work[i].tokens.size()) - (pending ? 1 : 0);
  }
  for (std::size_t i = 0, next = 0; i < rows.size(); ++i) {
    if (!work[i].sample) continue;
    Sampled& sampled = result_.sampled[next++];
    if (sampled.kind == Sampled::Kind::kPending || rows[i]->state == Sequence::State::kDone)
      continue;
    deliver_to(*rows[i], sampled);
  }
}

void EngineLoop::deliver_to(Sequence& sequence, Sampled& sampled) {
  Request& request = *sequence.request;
  if (sampled.kind == Sampled::Kind::kFailed) return end_failed(request, sampled.piece);
  count_token(request);
  Advance step = advance(sequence, sampled, engine_.info().context_tokens);
  if (step.finished) table_.finish(sequence);
  if (request.unfinished == 0) {
    metrics_.finished.add();
    request.writer.finish(std::move(step.delta), request.usage());
    touch(request);
    table_.retire(request);
    return;
  }
  if (!step.delta) return;
  const bool full = request.writer.push(std::move(*step.delta)) == StreamWriter::Push::kFull;
  touch(request);
  if (full && !request.parked_since) {
    metrics_.parkings.add();
    table_.park(request, now_);
  }
}

void EngineLoop::count_token(Request& request) {
  ++tokens_in_window_;
  request.flow->served += FairQueue::kGeneratedWeight;
  metrics_.generated_tokens.add();
  if (!request.first_token_at) {
    request.first_token_at = now_;
    metrics_.ttft_seconds.observe(seconds(now_ - request.admitted_at));
  } else if (request.choices.size() == 1) {
    metrics_.itl_seconds.observe(seconds(now_ - request.last_token_at));
  }
  request.last_token_at = now_;
}

void EngineLoop::out_of_kv() {
  if (table_.drop_kept()) return;
  Sequence* const victim = table_.victim();
  const bool alone = table_.running().size() == 1 && table_.parked_sequences() == 0;
  if (alone) {
    end(*victim->request, metrics_.failed,
        {Code::kResourceExhausted,
         concat(
             "the KV cache holds ", engine_.info().kv_tokens,
             " tokens, too few for this request by itself (--context-tokens, --max-sequences)")});
    return;
  }
  metrics_.put_back.add();
  metrics_.recomputed_tokens.add(victim->computed);
  table_.put_back(*victim);
}

// An aborted pass leaves the rows' KV half written. Nearly always they are all dead, and the next
// turn ends them.
void EngineLoop::put_back_batch() {
  for (Sequence* sequence : composer_.rows()) table_.put_back(*sequence);
}

// Nobody knows what is in its slots now.
void EngineLoop::end_failed(Request& request, std::string_view why) {
  request.caching.store = false;
  end(request, metrics_.failed, {Code::kInternal, concat("the engine failed: ", why)});
}

void EngineLoop::end(Request& request, Counter& how, Error error) {
  how.add();
  request.writer.finish(std::nullopt, tl::unexpected(std::move(error)));
  touch(request);
  table_.retire(request);
}

void EngineLoop::touch(Request& request) {
  if (auto wire = request.writer.take_touched_wire()) touched_wires_.push_back(std::move(wire));
}

void EngineLoop::publish_load() {
  const Duration window = now_ - window_start_;
  if (window >= kRateWindow) {
    tokens_per_second_ =
        static_cast<float>(static_cast<double>(tokens_in_window_) / seconds(window));
    tokens_in_window_ = 0;
    window_start_ = now_;
  }
  Load load;
  load.running = static_cast<std::uint32_t>(table_.running().size());
  load.parked = static_cast<std::uint32_t>(table_.parked_sequences());
  load.kv_used_tokens = table_.parked_tokens();
  for (const Sequence* sequence : table_.running()) {
    load.kv_used_tokens += static_cast<std::uint64_t>(sequence->computed);
    if (sequence->owed() > 1)
      load.prefill_backlog_tokens += static_cast<std::uint64_t>(sequence->owed());
  }
  const auto next_wait = pace_.wait(table_.waiting().size());
  metrics_.next_wait_seconds.set(table_.free_slots() > 0 || !next_wait ? 0 : seconds(*next_wait));
  load.kv_capacity_tokens = engine_.info().kv_tokens;
  load.tokens_per_second = tokens_per_second_;
  admission_.set_load(load);
  metrics_.running.set(load.running);
  metrics_.parked.set(load.parked);
  metrics_.slots_used.set(load.running + load.parked);
  metrics_.kv_used_tokens.set(static_cast<double>(load.kv_used_tokens));
  metrics_.kv_capacity_tokens.set(static_cast<double>(load.kv_capacity_tokens));
  metrics_.prefix_cache_tokens.set(static_cast<double>(table_.kept_tokens()));
}

bool EngineLoop::batch_is_dead() noexcept {
  if (stop_.load(std::memory_order_relaxed)) return true;
  const TimePoint now = clock_.now();
  const auto& rows = composer_.rows();
  while (live_row_ < rows.size() && rows[live_row_]->request->dead(now)) ++live_row_;
  return live_row_ >= rows.size();
}

TimePoint EngineLoop::next_event() const {
  TimePoint next = kForever;
  if (const Request* request = table_.first_to_expire()) next = std::min(next, request->deadline);
  if (const Request* request = table_.longest_parked()) {
    next = std::min(next, *request->parked_since + limits_.park_limit);
    const bool wanted = !table_.waiting().empty() && table_.free_slots() == 0;
    if (wanted) next = std::min(next, std::max(now_, *request->parked_since + kParkedHold));
  }
  return next;
}

}  // namespace sluice
