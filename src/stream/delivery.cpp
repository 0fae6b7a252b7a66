#include "stream/delivery.h"

#include <iterator>
#include <utility>

namespace sluice {

Delivery::Delivery() : thread_([this]() noexcept { run(); }) {}

Delivery::~Delivery() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    posted_.notify_one();
  }
  thread_.join();
}

void Delivery::post(std::vector<std::shared_ptr<WireQueue>>& wires) noexcept {
  if (wires.empty()) return;
  MutexLock lock(mutex_);
  const bool idle = queue_.empty();
  if (idle) {
    std::swap(queue_, wires);
  } else {
    queue_.insert(queue_.end(), std::make_move_iterator(wires.begin()),
                  std::make_move_iterator(wires.end()));
    wires.clear();
  }
  if (idle) posted_.notify_one();
}

void Delivery::run() noexcept {
  std::vector<std::shared_ptr<WireQueue>> batch;
  for (;;) {
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) posted_.wait(mutex_);
      if (queue_.empty()) return;
      std::swap(batch, queue_);
    }
    for (const auto& wire : batch) wire->wake();
    batch.clear();
  }
}

}  // namespace sluice
