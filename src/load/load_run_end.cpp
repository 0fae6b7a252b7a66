// The window of a LoadRun that is counted, what is read at its edges, and how a run ends.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/process.h"
#include "load/load_run_state.h"
#include "load/metrics_scrape.h"
#include "load/processor_time.h"

namespace sluice {

void LoadRun::State::begin_window() {
  window_begin_ = by_requests() ? std::chrono::steady_clock::now() : warm_until_;
  recorder_.begin_window(window_begin_);
  if (!by_requests()) recorder_.end_window(end_);
  cpu_at_begin_ = own_cpu_seconds();
  lag_.clear();
  read_server_cpu(true);
}

void LoadRun::State::end_window(TimePoint end) {
  if (window_end_ != kForever) return;
  if (window_begin_ == kForever) begin_window();  // stopped before it was warm
  window_end_ = end;
  recorder_.end_window(end);
  cpu_at_end_ = own_cpu_seconds();
  read_server_cpu(false);
}

// By requests the window ends with the last of them.
void LoadRun::State::close(bool interrupted) {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(closing_, true)) return;
  }
  interrupted_ = interrupted;
  arrival_timer_.cancel();
  const TimePoint now = std::chrono::steady_clock::now();
  if (is_open() && !by_requests()) {
    for (draw(); due_->due < std::min(end_, now); draw()) {
      recorder_.not_started(due_->due, now, is_counted(due_->number, due_->due));
      due_.reset();
    }
  }
  if (!by_requests() || interrupted) {
    end_window(std::min(end_, now));
    after(options_.grace, [this] { cut(); });
  }
  look_for_end();
}

void LoadRun::State::cut() noexcept {
  for (const auto& stream : streams_) stream->cut();
}

void LoadRun::State::look_for_end() {
  {
    const MutexLock lock(mutex_);
    if (!closing_ || running_ > 0) return;
  }
  end_window(std::chrono::steady_clock::now());
  if (scrapes_ > 0) return;
  recorder_.tick(std::chrono::steady_clock::now(), 0);
  io_.stop();
}

void LoadRun::State::stop() noexcept {
  asio::post(io_, [this] {
    bool again = false;
    {
      const MutexLock lock(mutex_);
      again = closing_;
    }
    again ? cut() : close(true);
  });
}

void LoadRun::State::read_server_cpu(bool first) {
  const std::size_t scraped = options_.server_metrics.size();
  auto& readings = first ? first_readings_ : last_readings_;
  for (std::size_t i = scraped; i < readings.size(); ++i) {
    readings[i] = {cpu_seconds_of(options_.server_pids[i - scraped]),
                   std::chrono::steady_clock::now()};
  }
  for (std::size_t i = 0; i < scraped; ++i) {
    ++scrapes_;
    asio::co_spawn(io_, scrape(i, first), asio::detached);
  }
}

Task<void> LoadRun::State::scrape(std::size_t server, bool first) {
  const std::string& address = options_.server_metrics[server];
  const std::optional<std::string> text = co_await scrape_metrics(address);
  auto& readings = first ? first_readings_ : last_readings_;
  if (text) readings[server] = {cpu_seconds_in(*text), std::chrono::steady_clock::now()};
  --scrapes_;
  look_for_end();
}

}  // namespace sluice
