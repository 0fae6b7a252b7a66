#include "scheduler/fair_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "scheduler/sequence.h"

namespace sluice {

FairQueue::Flow& FairQueue::join(std::string_view name) {
  Flow& flow = flows_.try_emplace(std::string(name), Flow{.name = std::string(name)}).first->second;
  ++flow.requests;
  return flow;
}

void FairQueue::leave(Flow& flow) {
  CHECK(flow.requests > 0, "a request leaves its flow once");
  if (--flow.requests > 0) return;
  CHECK(flow.waiting.empty(), "a request that has ended does not wait");
  flows_.erase(flows_.find(flow.name));
}

void FairQueue::add(Flow& flow, Key key, Sequence& sequence) {
  // Who did not wait has no claim on what others were given meanwhile.
  if (flow.waiting.empty()) flow.served = std::max(flow.served, least_served());
  flow.waiting.emplace(key, &sequence);
  ++size_;
}

void FairQueue::remove(Flow& flow, Key key) {
  if (flow.waiting.erase(key) == 0) return;
  if (--size_ == 0) last_served_ = flow.served;
}

std::uint64_t FairQueue::least_served() const noexcept {
  if (size_ == 0) return last_served_;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [name, flow] : flows_) {
    if (!flow.waiting.empty()) least = std::min(least, flow.served);
  }
  return least;
}

FairQueue::Walk::Walk(FairQueue& queue) {
  for (const auto& [name, flow] : queue.flows_) {
    if (!flow.waiting.empty()) heads_.push_back({&flow, flow.waiting.begin(), flow.served});
  }
  std::make_heap(heads_.begin(), heads_.end(), later);
}

bool FairQueue::Walk::later(const Head& a, const Head& b) noexcept {
  const auto& [a_priority, a_arrival, a_choice] = a.at->first;
  const auto& [b_priority, b_arrival, b_choice] = b.at->first;
  return std::tuple(a_priority, a.served, a_arrival) > std::tuple(b_priority, b.served, b_arrival);
}

Sequence* FairQueue::Walk::next() {
  if (heads_.empty()) return nullptr;
  std::pop_heap(heads_.begin(), heads_.end(), later);
  Head& head = heads_.back();
  Sequence* const sequence = head.at->second;
  head.served += static_cast<std::uint64_t>(sequence->owed());
  if (++head.at == head.flow->waiting.end()) {
    heads_.pop_back();
  } else {
    std::push_heap(heads_.begin(), heads_.end(), later);
  }
  return sequence;
}

}  // namespace sluice
