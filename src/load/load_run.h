// LoadRun: one run of a load against a target. In a closed loop each user asks again when it was
// answered; in an open loop requests begin when they are due. What is due while all streams are in
// use is begun later, and its latencies count from when it was due: a server (or tool) that stalls
// can't hide that by being asked less. Arrivals are drawn one at a time, so that an overload costs
// no memory. Bounded by the most streams of LoadOptions.
// Thread: run() blocks one; stop() any; the rest is said where it differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "load/load_options.h"
#include "load/load_recorder.h"
#include "load/load_stream.h"
#include "load/workload.h"

namespace sluice {

struct ServerCpu {
  std::string name;               // as the option has it
  std::optional<double> seconds;  // over `over`; nothing: it could not be read
  double over = 0;
};

struct LoadResult {
  LoadCounts counts;
  std::vector<TimelineInterval> timeline;
  double window_seconds = 0;   // that is counted
  double warm_up_seconds = 0;  // before it
  double own_cpu_seconds = 0;  // within the window
  std::uint64_t own_peak_bytes = 0;
  LatencyHistogram lag;  // of this tool's own timer, a hundred times a second
  std::vector<ServerCpu> servers;
  std::size_t streams = 0;          // that were needed
  std::uint64_t held_arrivals = 0;  // that found every stream in use
  bool interrupted = false;
};

struct LiveFigures {
  double elapsed_seconds = 0;
  bool warming_up = false;
  bool finishing = false;  // nothing new is asked
  std::size_t running = 0;
  const TimelineInterval* last = nullptr;
  std::uint64_t ended = 0;  // since the start
  std::uint64_t failed = 0;
};

class LoadRun {
 public:
  // All outlive it.
  LoadRun(const LoadOptions& options, LoadTarget& target, const Workload& workload);
  ~LoadRun();
  LoadRun(const LoadRun&) = delete;
  LoadRun& operator=(const LoadRun&) = delete;

  // `show` is called each second, on this thread.
  [[nodiscard]] LoadResult run(const std::function<void(const LiveFigures&)>& show);
  // The first time: nothing new is asked. From the second on: what runs is ended.
  void stop() noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
