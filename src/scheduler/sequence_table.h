// SequenceTable: every admitted request and where its sequences stand: waiting for a slot, running,
// or parked. It keeps the orders that the loop asks for (queue order, deadlines, longest parked)
// and owns the slots. Bounded by Admission for what waits and by the number of slots for the
// rest. Thread: engine. Pointers to requests and sequences are valid until sweep().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "scheduler/fair_queue.h"
#include "scheduler/prefix_cache.h"
#include "scheduler/sequence.h"

namespace sluice {

class SequenceTable {
 public:
  SequenceTable(Engine& engine, std::uint32_t slots);

  // Its sequences wait.
  Request& add(Admission::Admitted admitted);
  // Null if it has ended.
  [[nodiscard]] Request* find(RequestId id) noexcept;

  // waiting → running, in a free slot (there must be one), with the KV of as many of its first
  // tokens as the prefix cache, or a sequence that has a slot, can offer.
  void start(Sequence& sequence);
  // running or parked → waiting; the KV is dropped and will be computed again.
  void put_back(Sequence& sequence);
  // Its running sequences keep their KV and leave the batch; the waiting ones wait on.
  void park(Request& request, TimePoint now);
  void resume(Request& request, TimePoint now);
  // One choice is done: its slot is free again, its KV left to the prefix cache if it may be.
  void finish(Sequence& sequence);
  // All its choices are done, and it is forgotten at the next sweep.
  void retire(Request& request);
  // Forgets what was retired. Call it when no pointer is held.
  void sweep();

  // Null where one left since the last sweep.
  [[nodiscard]] const std::vector<Sequence*>& running() const noexcept { return running_; }
  [[nodiscard]] FairQueue& waiting() noexcept { return waiting_; }
  [[nodiscard]] const FairQueue& waiting() const noexcept { return waiting_; }
  [[nodiscard]] std::size_t free_slots() const noexcept { return cache_.free_slots(); }
  [[nodiscard]] std::uint64_t kept_tokens() const noexcept { return cache_.kept_tokens(); }
  // Frees the KV that the prefix cache has not used for longest. False: it keeps none.
  bool drop_kept() { return cache_.drop_oldest(); }
  [[nodiscard]] std::size_t requests() const noexcept { return requests_.size(); }
  [[nodiscard]] std::size_t parked_sequences() const noexcept { return parked_sequences_; }
  [[nodiscard]] std::uint64_t parked_tokens() const noexcept {
    return parked_tokens_;
  }  // in the KV cache

  // How many wait that are to get a slot before it does and before one is free for it.
  [[nodiscard]] std::size_t ahead_of(const Request& request);

  // The request whose deadline comes first.
  [[nodiscard]] Request* first_to_expire() const noexcept;
  [[nodiscard]] Request* longest_parked() const noexcept;
  // The sequence that gives up its KV first when there is none left: of a parked request, else the
  // youngest running one.
  [[nodiscard]] Sequence* victim() const noexcept;

  // All that have not ended, in no order.
  [[nodiscard]] std::vector<Request*> all() const;

 private:
  void enter_waiting(Sequence& sequence);
  void leave_waiting(Sequence& sequence);
  void take_slot(Sequence& sequence);
  [[nodiscard]] PrefixCache::Source best_running(const Sequence& sequence) const noexcept;
  void free_slot(Sequence& sequence, bool keep);
  void enter_running(Sequence& sequence);
  void leave_running(Sequence& sequence);
  void enter_parked(Sequence& sequence);
  void leave_parked(Sequence& sequence);

  Engine& engine_;
  PrefixCache cache_;
  std::uint64_t arrivals_ = 0;
  std::unordered_map<RequestId, std::unique_ptr<Request>> requests_;
  FairQueue waiting_;
  std::vector<Sequence*> running_;
  std::size_t parked_sequences_ = 0;
  std::uint64_t parked_tokens_ = 0;
  std::set<std::pair<TimePoint, Request*>> deadlines_;
  std::set<std::pair<TimePoint, Request*>> parked_;
  std::vector<std::unique_ptr<Request>> retired_;
};

}  // namespace sluice
