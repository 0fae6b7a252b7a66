// Delivery: the thread that wakes wires, so that the engine thread never writes to one. The engine
// thread posts the wires that a step touched, all at once; this thread calls their wake in that
// order. Bounded by the number of wires: each is queued at most once (WireQueue::mark). Thread:
// post any; wakes run on a thread of its own, which ends with the object.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "stream/wire_queue.h"

namespace sluice {

class Delivery {
 public:
  Delivery();
  ~Delivery();
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  // Takes all of `wires` and leaves it empty.
  void post(std::vector<std::shared_ptr<WireQueue>>& wires) noexcept EXCLUDES(mutex_);

 private:
  void run() noexcept EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar posted_;
  std::vector<std::shared_ptr<WireQueue>> queue_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace sluice
