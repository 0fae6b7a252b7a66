// LoadRecorder: what the streams of a run saw, summed up. Streams are spread over parts, each with
// a lock of its own, so that they hardly ever wait for each other. Bounded: a few histograms a
// part, error names (kMostErrors; further ones are "other"), and the timeline. Thread: any; tick()
// and the rest of what reads: the run's.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "load/latency_histogram.h"
#include "load/load_stream.h"
#include "load/timeline.h"

namespace sluice {

// What a request must keep to be good; 0: anything.
struct LoadTargets {
  double ttft_ms = 0;
  double itl_ms = 0;  // mean over the request
};

struct LoadCounts {
  LatencyHistogram ttft;      // from the intended start to the first token
  LatencyHistogram itl;       // between two messages with tokens
  LatencyHistogram tpot;      // of a request: from its first token to its last, by tokens but one
  LatencyHistogram total;     // from the intended start to the end
  LatencyHistogram queue;     // in the server's, as it tells
  LatencyHistogram lateness;  // from the intended start to the real one
  std::uint64_t succeeded = 0;
  std::uint64_t good = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;   // as planned
  std::uint64_t unfinished = 0;  // when the run was over
  std::uint64_t slow = 0;        // of those that succeeded
  std::uint64_t not_started = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t completion_tokens = 0;  // as the server counts
  std::uint64_t tokens = 0;             // that came within the window, of whichever request
  std::uint64_t messages = 0;           // likewise
  std::map<std::string, std::uint64_t> errors;

  void add(const LoadCounts& other);
};

class LoadRecorder {
 public:
  static constexpr std::size_t kMostErrors = 64;

  // Nothing is counted before begin_window().
  LoadRecorder(const LoadTargets& targets, TimePoint start);

  // Tokens that count come within [begin, end).
  void begin_window(TimePoint begin) noexcept { begin_ = begin.time_since_epoch().count(); }
  void end_window(TimePoint end) noexcept { end_ = end.time_since_epoch().count(); }

  void received(std::size_t stream, const LoadTimes& times, std::uint32_t tokens,
                TimePoint before) noexcept;
  void ended(std::size_t stream, const LoadTimes& times, const LoadOutcome& outcome) noexcept;
  // One that was due and never begun: it waited at least until `now`.
  void not_started(TimePoint intended, TimePoint now, bool counted) noexcept;

  // Closes an interval of the timeline.
  void tick(TimePoint now, std::size_t running);
  [[nodiscard]] const Timeline& timeline() const noexcept { return timeline_; }
  [[nodiscard]] LoadCounts counts() const;

 private:
  static constexpr std::size_t kParts = 8;
  struct alignas(64) Part {
    Mutex mutex;
    LoadCounts counts GUARDED_BY(mutex);
    TimelineInterval interval GUARDED_BY(mutex);
  };

  [[nodiscard]] bool in_window(TimePoint now) const noexcept;
  void count_success(const LoadTimes& times, const LoadOutcome& outcome,
                     LoadCounts& counts) const noexcept;
  [[nodiscard]] bool is_good(const LoadTimes& times) const noexcept;
  static void count_error(const std::string& error, std::map<std::string, std::uint64_t>& errors);

  const LoadTargets targets_;
  std::atomic<Duration::rep> begin_;
  std::atomic<Duration::rep> end_;
  const std::unique_ptr<std::array<Part, kParts>> parts_;
  Timeline timeline_;
};

}  // namespace sluice
