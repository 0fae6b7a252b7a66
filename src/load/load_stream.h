// LoadStream: one request at a time against the target, the next one after it on the same object,
// which is all that a stream costs however long a run is. Times are taken where the bytes come out
// of the transport. Thread: begin() any one when idle; what a target tells, one at a time; cancel()
// any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "load/load_options.h"
#include "load/workload.h"

namespace sluice {

// How a request ended, as the target saw it.
struct LoadOutcome {
  std::string error;  // empty: an answer with its proper end; else gRPC's or HTTP's code, or a word
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;
  std::optional<std::uint32_t> completion_tokens;  // where the answer's end said how many
  std::optional<Duration> queued;                  // in the server's queue, where it says so
};

struct LoadTimes {
  std::uint64_t number = 0;
  TimePoint intended{};  // latencies count from here
  TimePoint begun{};
  TimePoint first{};  // token; only with tokens > 0
  TimePoint last{};
  TimePoint ended{};
  std::uint32_t tokens = 0;
  std::uint32_t messages = 0;
  bool counted = false;    // not of the warm-up
  bool slow = false;       // reads slowly, as planned
  bool cancelled = false;  // by ourselves, as planned
  bool cut = false;        // by ourselves, when the run was over
};

class LoadStream;

// What streams need of the run. Thread: any.
class LoadEvents {
 public:
  virtual ~LoadEvents() = default;
  // `tokens` more came, in one message, at times.last; `before`: the message before, or kForever.
  virtual void received(LoadStream& stream, std::uint32_t tokens, TimePoint before) noexcept = 0;
  // The stream is idle; it may get its next request within this call.
  virtual void ended(LoadStream& stream, const LoadOutcome& outcome) noexcept = 0;
  // Calls `act` on the run's thread.
  virtual void after(Duration delay, std::function<void()> act) = 0;
};

class LoadStream {
 public:
  LoadStream(std::size_t index, LoadEvents& events) noexcept : index_(index), events_(events) {}
  virtual ~LoadStream() = default;
  LoadStream(const LoadStream&) = delete;
  LoadStream& operator=(const LoadStream&) = delete;

  void begin(std::uint64_t number, TimePoint intended, bool counted, PlannedRequest planned);
  // The run is over: ends what runs.
  void cut() noexcept;

  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] const LoadTimes& times() const noexcept { return times_; }

 protected:
  // Ends in exactly one call of end(), on whichever thread.
  virtual void start(PlannedRequest& planned) = 0;
  // Ends request `number` if that is what runs. Any thread.
  virtual void cancel(std::uint64_t number) noexcept = 0;

  // A message with `tokens` more. Whether it is to be cancelled now.
  [[nodiscard]] bool receive(std::uint32_t tokens) noexcept;
  // How long a slow reader waits before it reads on; 0: it is none.
  [[nodiscard]] Duration pause() const noexcept;
  [[nodiscard]] bool is_slow() const noexcept { return read_rate_ > 0; }
  void end(const LoadOutcome& outcome) noexcept;
  [[nodiscard]] LoadEvents& events() noexcept { return events_; }

 private:
  const std::size_t index_;
  LoadEvents& events_;
  LoadTimes times_;
  std::uint32_t last_tokens_ = 0;  // of the last message
  double read_rate_ = 0;           // tokens per second; 0: as they come
  std::uint32_t cancel_at_ = 0;    // tokens; 0: never
  std::atomic<std::uint64_t> cut_number_ = UINT64_MAX;
  std::atomic<std::uint64_t> cancelled_number_ = UINT64_MAX;
  std::atomic<std::uint64_t> running_ = UINT64_MAX;
};

// Thread: the run's.
class LoadTarget {
 public:
  virtual ~LoadTarget() = default;
  // Nothing, or why nobody can be asked.
  [[nodiscard]] virtual Result<void> connect() = 0;
  // Its threads are still from now on: all streams are idle, and may go.
  virtual void stop() noexcept = 0;
  // The target outlives its streams.
  [[nodiscard]] virtual std::unique_ptr<LoadStream> make_stream(std::size_t index,
                                                                LoadEvents& events) = 0;
};

}  // namespace sluice
