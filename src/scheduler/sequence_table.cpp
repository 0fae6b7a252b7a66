#include "scheduler/sequence_table.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"

namespace sluice {
namespace {

FairQueue::Key queue_key(const Sequence& sequence) noexcept {
  return {-sequence.request->priority, sequence.request->arrival, sequence.index};
}

}  // namespace

SequenceTable::SequenceTable(Engine& engine, std::uint32_t slots)
    : engine_(engine), cache_(engine, slots) {}

Request& SequenceTable::add(Admission::Admitted admitted) {
  FairQueue::Flow& flow = waiting_.join(admitted.submission.flow);
  auto owned = std::make_unique<Request>(std::move(admitted), ++arrivals_, flow);
  Request& request = *owned;
  request.caching.read = request.caching.read && engine_.info().keeps_prefixes;
  request.caching.store = request.caching.store && engine_.info().keeps_prefixes;
  requests_.emplace(request.id, std::move(owned));
  for (Sequence& sequence : request.choices) enter_waiting(sequence);
  if (request.deadline != kForever) deadlines_.emplace(request.deadline, &request);
  return request;
}

Request* SequenceTable::find(RequestId id) noexcept {
  const auto found = requests_.find(id);
  return found == requests_.end() ? nullptr : found->second.get();
}

void SequenceTable::start(Sequence& sequence) {
  CHECK(sequence.state == Sequence::State::kWaiting, "only a waiting sequence gets a slot");
  leave_waiting(sequence);
  take_slot(sequence);
  // What is computed again after the KV was taken away is not the client's doing.
  if (!sequence.request->first_row_at)
    sequence.request->flow->served += static_cast<std::uint64_t>(sequence.owed());
  enter_running(sequence);
  const auto& choices = sequence.request->choices;
  const bool all_started = std::none_of(choices.begin(), choices.end(), [](const Sequence& choice) {
    return choice.state == Sequence::State::kWaiting;
  });
  if (all_started) sequence.request->ticket.give_back();
}

void SequenceTable::put_back(Sequence& sequence) {
  if (sequence.state == Sequence::State::kParked) {
    leave_parked(sequence);
  } else {
    leave_running(sequence);
  }
  sequence.request->recomputed_tokens += static_cast<std::uint32_t>(sequence.computed);
  free_slot(sequence, false);
  enter_waiting(sequence);
}

void SequenceTable::park(Request& request, TimePoint now) {
  if (request.parked_since) return;
  request.parked_since = now;
  parked_.emplace(now, &request);
  for (Sequence& sequence : request.choices) {
    if (sequence.state != Sequence::State::kRunning) continue;
    leave_running(sequence);
    enter_parked(sequence);
  }
}

void SequenceTable::resume(Request& request, TimePoint now) {
  if (!request.parked_since) return;
  parked_.erase({*request.parked_since, &request});
  request.parked_for += now - *request.parked_since;
  request.parked_since.reset();
  request.last_token_at = now;
  for (Sequence& sequence : request.choices) {
    if (sequence.state != Sequence::State::kParked) continue;
    leave_parked(sequence);
    enter_running(sequence);
  }
}

void SequenceTable::finish(Sequence& sequence) {
  switch (sequence.state) {
    case Sequence::State::kWaiting:
      leave_waiting(sequence);
      break;
    case Sequence::State::kRunning:
      leave_running(sequence);
      break;
    case Sequence::State::kParked:
      leave_parked(sequence);
      break;
    case Sequence::State::kDone:
      return;
  }
  free_slot(sequence, sequence.request->caching.store);
  sequence.state = Sequence::State::kDone;
  --sequence.request->unfinished;
}

void SequenceTable::retire(Request& request) {
  for (Sequence& sequence : request.choices) finish(sequence);
  if (request.deadline != kForever) deadlines_.erase({request.deadline, &request});
  if (request.parked_since) parked_.erase({*request.parked_since, &request});
  const auto found = requests_.find(request.id);
  CHECK(found != requests_.end(), "a request is retired once");
  waiting_.leave(*std::exchange(request.flow, nullptr));
  retired_.push_back(std::move(found->second));
  requests_.erase(found);
}

void SequenceTable::sweep() {
  std::erase(running_, nullptr);
  for (std::uint32_t i = 0; i < running_.size(); ++i) running_[i]->place = i;
  retired_.clear();
}

std::size_t SequenceTable::ahead_of(const Request& request) {
  if (waiting_.size() <= free_slots()) return 0;
  std::size_t before = 0;
  FairQueue::Walk walk(waiting_);
  for (const Sequence* sequence = walk.next(); sequence != nullptr && sequence->request != &request;
       sequence = walk.next())
    ++before;
  return before - std::min(before, free_slots());
}

Request* SequenceTable::first_to_expire() const noexcept {
  return deadlines_.empty() ? nullptr : deadlines_.begin()->second;
}

Request* SequenceTable::longest_parked() const noexcept {
  return parked_.empty() ? nullptr : parked_.begin()->second;
}

Sequence* SequenceTable::victim() const noexcept {
  for (const auto& [since, request] : parked_) {
    for (Sequence& sequence : request->choices) {
      if (sequence.slot) return &sequence;
    }
  }
  Sequence* youngest = nullptr;
  for (Sequence* sequence : running_) {
    if (sequence == nullptr) continue;
    if (youngest == nullptr || queue_key(*sequence) > queue_key(*youngest)) youngest = sequence;
  }
  return youngest;
}

std::vector<Request*> SequenceTable::all() const {
  std::vector<Request*> found;
  found.reserve(requests_.size());
  for (const auto& [id, request] : requests_) found.push_back(request.get());
  return found;
}

void SequenceTable::take_slot(Sequence& sequence) {
  Request& request = *sequence.request;
  if (!request.caching.read) {
    sequence.slot = cache_.take_empty();
    return;
  }
  const PrefixCache::Taken taken =
      cache_.take(request.caching.scope, sequence.tokens, best_running(sequence));
  sequence.slot = taken.slot;
  sequence.computed = taken.tokens;
  if (sequence.index == 0 && sequence.generated == 0)
    request.cached_tokens = static_cast<std::uint32_t>(taken.tokens);
}

PrefixCache::Source SequenceTable::best_running(const Sequence& sequence) const noexcept {
  PrefixCache::Source best;
  for (const Sequence* other : running_) {
    if (other == nullptr || other->request->caching.scope != sequence.request->caching.scope)
      continue;
    const auto computed = std::span(other->tokens).first(static_cast<std::size_t>(other->computed));
    const std::int32_t common = common_prefix(computed, sequence.tokens);
    if (common > best.tokens) best = {*other->slot, common};
  }
  return best;
}

void SequenceTable::free_slot(Sequence& sequence, bool keep) {
  if (!sequence.slot) return;
  if (keep && sequence.computed > 0) {
    sequence.tokens.resize(static_cast<std::size_t>(sequence.computed));
    cache_.put(*sequence.slot, sequence.request->caching.scope, std::move(sequence.tokens));
  } else {
    cache_.put_empty(*sequence.slot);
  }
  sequence.slot.reset();
  sequence.computed = 0;
}

void SequenceTable::enter_waiting(Sequence& sequence) {
  sequence.state = Sequence::State::kWaiting;
  waiting_.add(*sequence.request->flow, queue_key(sequence), sequence);
}

void SequenceTable::leave_waiting(Sequence& sequence) {
  waiting_.remove(*sequence.request->flow, queue_key(sequence));
}

void SequenceTable::enter_running(Sequence& sequence) {
  sequence.state = Sequence::State::kRunning;
  sequence.place = static_cast<std::uint32_t>(running_.size());
  running_.push_back(&sequence);
}

// Leaves a hole that sweep() closes, so that the loop may go through running() while sequences
// leave it.
void SequenceTable::leave_running(Sequence& sequence) {
  CHECK(running_[sequence.place] == &sequence, "a running sequence is at its place");
  running_[sequence.place] = nullptr;
}

void SequenceTable::enter_parked(Sequence& sequence) {
  sequence.state = Sequence::State::kParked;
  ++parked_sequences_;
  parked_tokens_ += static_cast<std::uint64_t>(sequence.computed);
}

void SequenceTable::leave_parked(Sequence& sequence) {
  --parked_sequences_;
  parked_tokens_ -= static_cast<std::uint64_t>(sequence.computed);
}

}  // namespace sluice
