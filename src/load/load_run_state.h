// LoadRun::State: the loops of a run, its clock and its end. Thread: "driver" is the one that runs
// io_; what streams call comes on any.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "gateway/asio.h"
#include "load/arrivals.h"
#include "load/load_run.h"

namespace sluice {

class LoadRun::State final : public LoadEvents {
 public:
  State(const LoadOptions& options, LoadTarget& target, const Workload& workload);

  LoadResult run(const std::function<void(const LiveFigures&)>& show);
  void stop() noexcept;

  void received(LoadStream& stream, std::uint32_t tokens, TimePoint before) noexcept override;
  void ended(LoadStream& stream, const LoadOutcome& outcome) noexcept override;
  void after(Duration delay, std::function<void()> act) override;

 private:
  struct Arrival {
    std::uint64_t number;
    TimePoint due;
  };

  // driver
  void start_users();
  void pump();
  void draw();
  LoadStream* free_stream();
  void begin_window();
  void close(bool interrupted);
  void cut() noexcept;
  void end_window(TimePoint end);
  void look_for_end();
  void beat();
  void tick(const std::function<void(const LiveFigures&)>& show);
  void read_server_cpu(bool first);
  Task<void> scrape(std::size_t server, bool first);

  // any
  void next_of_user(LoadStream& stream);
  [[nodiscard]] bool is_open() const noexcept { return options_.rate > 0; }
  [[nodiscard]] bool by_requests() const noexcept { return options_.requests > 0; }
  [[nodiscard]] bool is_counted(std::uint64_t number, TimePoint intended) const noexcept;
  [[nodiscard]] std::size_t running() EXCLUDES(mutex_);

  struct ServerReading {
    std::optional<double> seconds;
    TimePoint at{};
  };

  const LoadOptions& options_;
  LoadTarget& target_;
  const Workload& workload_;
  const std::uint64_t warm_up_requests_;
  asio::io_context io_{1};
  asio::steady_timer arrival_timer_{io_};
  asio::steady_timer beat_timer_{io_};
  asio::steady_timer tick_timer_{io_};
  const TimePoint start_;
  const TimePoint warm_until_;
  const TimePoint end_;
  LoadRecorder recorder_;
  Arrivals arrivals_;
  std::optional<Arrival> due_;
  std::vector<std::unique_ptr<LoadStream>> streams_;
  LatencyHistogram lag_;
  std::vector<ServerReading> first_readings_;
  std::vector<ServerReading> last_readings_;
  std::size_t scrapes_ = 0;
  TimePoint window_begin_ = kForever;
  TimePoint window_end_ = kForever;
  double cpu_at_begin_ = 0;
  double cpu_at_end_ = 0;
  std::uint64_t held_ = 0;
  std::uint64_t ended_ = 0;  // of the intervals so far
  std::uint64_t failed_ = 0;
  bool interrupted_ = false;

  Mutex mutex_;
  bool closing_ GUARDED_BY(mutex_) = false;
  bool waiting_ GUARDED_BY(mutex_) = false;  // an arrival is, for a stream
  std::size_t running_ GUARDED_BY(mutex_) = 0;
  std::uint64_t next_ GUARDED_BY(mutex_) = 0;
  std::vector<LoadStream*> free_ GUARDED_BY(mutex_);
};

}  // namespace sluice
