// StopSignals: SIGTERM and SIGINT as calls on a thread of its own, where anything is allowed. From
// its construction on both are blocked in this thread and in those started from it: make it before
// any other thread.
// Thread: any.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace sluice {

class StopSignals {
 public:
  // `act` is given 1 for the first signal, 2 for the second, …
  explicit StopSignals(std::function<void(int nth)> act);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  void run() noexcept;

  const std::function<void(int)> act_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace sluice
