// For tests that read a ReplicaStream as a Completion does. Thread: its I/O thread.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "gateway/replica_stream.h"
#include "gateway/wake_up.h"

namespace sluice {

// Waits until there is something, then takes all of it.
inline Task<Arrival> next_arrival(ReplicaStream& stream, WakeUp& reader) {
  for (;;) {
    Arrival arrival = stream.take();
    if (arrival.end || !arrival.deltas.empty()) co_return arrival;
    co_await reader.wait();
  }
}

// A stream with who reads it.
class ReadStream {
 public:
  explicit ReadStream(const std::function<ReplicaStream(WakeUp&)>& open)
      : stream_(open(*reader_)) {}

  [[nodiscard]] Task<Arrival> next() { return next_arrival(stream_, *reader_); }

 private:
  std::unique_ptr<WakeUp> reader_ = std::make_unique<WakeUp>();
  ReplicaStream stream_;
};

}  // namespace sluice
