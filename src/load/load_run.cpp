#include "load/load_run.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "load/load_run_state.h"
#include "load/processor_time.h"

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kBeat{10};
constexpr std::chrono::seconds kTick{1};
// A user that was refused asks again no sooner: a server that is down is not hammered.
constexpr std::chrono::milliseconds kAfterError{100};

}  // namespace

LoadRun::LoadRun(const LoadOptions& options, LoadTarget& target, const Workload& workload)
    : state_(std::make_unique<State>(options, target, workload)) {}

LoadRun::~LoadRun() = default;

LoadResult LoadRun::run(const std::function<void(const LiveFigures&)>& show) {
  return state_->run(show);
}

void LoadRun::stop() noexcept { state_->stop(); }

LoadRun::State::State(const LoadOptions& options, LoadTarget& target, const Workload& workload)
    : options_(options),
      target_(target),
      workload_(workload),
      warm_up_requests_(static_cast<std::uint64_t>(static_cast<double>(options.requests) *
                                                   options.warm_up_share)),
      start_(std::chrono::steady_clock::now()),
      warm_until_(start_ +
                  std::chrono::duration_cast<Duration>(options.duration * options.warm_up_share)),
      end_(options.requests > 0 ? kForever : start_ + options.duration),
      recorder_({.ttft_ms = options.target_ttft_ms, .itl_ms = options.target_itl_ms}, start_),
      arrivals_(options.arrivals, std::max(options.rate, 1e-9), options.workload.seed),
      first_readings_(options.server_metrics.size() + options.server_pids.size()),
      last_readings_(first_readings_.size()) {}

LoadResult LoadRun::State::run(const std::function<void(const LiveFigures&)>& show) {
  if (!by_requests()) {
    after(warm_until_ - start_, [this] { begin_window(); });
    after(end_ - start_, [this] {
      if (is_open()) pump();
      close(false);
    });
  } else if (warm_up_requests_ == 0) {
    begin_window();
  }
  beat_timer_.expires_at(start_);
  beat();
  tick_timer_.expires_at(start_ + kTick);
  tick(show);
  is_open() ? pump() : start_users();
  io_.run();

  target_.stop();
  LoadResult result;
  result.counts = recorder_.counts();
  result.timeline = recorder_.timeline().intervals();
  const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
  if (window_begin_ < window_end_) result.window_seconds = seconds(window_end_ - window_begin_);
  if (window_begin_ != kForever) result.warm_up_seconds = seconds(window_begin_ - start_);
  result.own_cpu_seconds = cpu_at_end_ - cpu_at_begin_;
  result.own_peak_bytes = own_peak_bytes();
  result.lag = lag_;
  for (std::size_t i = 0; i < first_readings_.size(); ++i) {
    const std::size_t scraped = options_.server_metrics.size();
    ServerCpu& server = result.servers.emplace_back();
    server.name = i < scraped ? options_.server_metrics[i]
                              : "pid " + std::to_string(options_.server_pids[i - scraped]);
    if (!first_readings_[i].seconds || !last_readings_[i].seconds) continue;
    server.seconds = *last_readings_[i].seconds - *first_readings_[i].seconds;
    server.over = seconds(last_readings_[i].at - first_readings_[i].at);
  }
  result.streams = streams_.size();
  result.held_arrivals = held_;
  result.interrupted = interrupted_;
  streams_.clear();
  return result;
}

void LoadRun::State::start_users() {
  for (std::uint32_t user = 0; user < options_.concurrency; ++user) {
    streams_.push_back(target_.make_stream(user, *this));
    LoadStream& stream = *streams_.back();
    const auto when = options_.ramp * user / options_.concurrency;
    if (when.count() == 0) {
      next_of_user(stream);
    } else {
      after(when, [this, &stream] { next_of_user(stream); });
    }
  }
}

void LoadRun::State::next_of_user(LoadStream& stream) {
  std::uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    if (closing_ || (by_requests() && next_ >= options_.requests)) return;
    number = next_++;
    ++running_;
    if (by_requests() && number == warm_up_requests_ && number > 0) {
      asio::post(io_, [this] { begin_window(); });
    }
    if (by_requests() && next_ == options_.requests) asio::post(io_, [this] { close(false); });
  }
  const TimePoint now = std::chrono::steady_clock::now();
  stream.begin(number, now, is_counted(number, now), workload_.request(number));
}

bool LoadRun::State::is_counted(std::uint64_t number, TimePoint intended) const noexcept {
  return by_requests() ? number >= warm_up_requests_ : intended >= warm_until_;
}

void LoadRun::State::draw() {
  if (due_) return;
  const MutexLock lock(mutex_);
  due_ = Arrival{next_++, start_ + arrivals_.next()};
}

void LoadRun::State::pump() {
  for (;;) {
    draw();
    if (by_requests() ? due_->number >= options_.requests : due_->due >= end_) {
      if (by_requests()) close(false);
      return;  // a duration has its own timer
    }
    if (due_->due > std::chrono::steady_clock::now()) break;
    LoadStream* const stream = free_stream();
    if (stream == nullptr) return;  // ended() pumps again
    const Arrival arrival = *std::exchange(due_, std::nullopt);
    if (window_begin_ == kForever && by_requests() && arrival.number >= warm_up_requests_) {
      begin_window();
    }
    stream->begin(arrival.number, arrival.due, is_counted(arrival.number, arrival.due),
                  workload_.request(arrival.number));
  }
  arrival_timer_.expires_at(due_->due);
  arrival_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) pump();
  });
}

// It counts as running from now on.
LoadStream* LoadRun::State::free_stream() {
  {
    const MutexLock lock(mutex_);
    if (closing_) return nullptr;
    if (!free_.empty()) {
      LoadStream* const stream = free_.back();
      free_.pop_back();
      ++running_;
      return stream;
    }
    if (streams_.size() >= options_.max_streams) {
      if (!std::exchange(waiting_, true)) ++held_;
      return nullptr;
    }
    ++running_;
  }
  streams_.push_back(target_.make_stream(streams_.size(), *this));
  return streams_.back().get();
}

void LoadRun::State::received(LoadStream& stream, std::uint32_t tokens, TimePoint before) noexcept {
  recorder_.received(stream.index(), stream.times(), tokens, before);
}

void LoadRun::State::ended(LoadStream& stream, const LoadOutcome& outcome) noexcept {
  const bool failed = !outcome.error.empty() && !stream.times().cancelled;
  recorder_.ended(stream.index(), stream.times(), outcome);
  {
    // Under the lock to its end: who sees nothing run may end the run.
    const MutexLock lock(mutex_);
    --running_;
    if (is_open()) free_.push_back(&stream);
    if (closing_ && running_ == 0) asio::post(io_, [this] { look_for_end(); });
    if (closing_) return;
    if (is_open()) {
      if (std::exchange(waiting_, false)) asio::post(io_, [this] { pump(); });
      return;
    }
  }
  const auto pause = std::max(options_.think_time, failed ? kAfterError : options_.think_time);
  if (pause.count() == 0) return next_of_user(stream);
  after(pause, [this, &stream] { next_of_user(stream); });
}

void LoadRun::State::after(Duration delay, std::function<void()> act) {
  asio::post(io_, [this, when = std::chrono::steady_clock::now() + delay, act = std::move(act)] {
    auto timer = std::make_shared<asio::steady_timer>(io_, when);
    timer->async_wait([timer, act](boost::system::error_code error) {
      if (!error) act();
    });
  });
}

std::size_t LoadRun::State::running() {
  const MutexLock lock(mutex_);
  return running_;
}

void LoadRun::State::beat() {
  beat_timer_.expires_at(std::max(beat_timer_.expiry() + kBeat, std::chrono::steady_clock::now()));
  beat_timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    lag_.record(std::chrono::steady_clock::now() - beat_timer_.expiry());
    beat();
  });
}

void LoadRun::State::tick(const std::function<void(const LiveFigures&)>& show) {
  tick_timer_.async_wait([this, &show](boost::system::error_code error) {
    if (error) return;
    const TimePoint now = std::chrono::steady_clock::now();
    recorder_.tick(now, running());
    const TimelineInterval& last = recorder_.timeline().last();
    ended_ += last.ended;
    failed_ += last.failed;
    bool finishing = false;
    {
      const MutexLock lock(mutex_);
      finishing = closing_;
    }
    show({.elapsed_seconds = std::chrono::duration<double>(now - start_).count(),
          .warming_up = window_begin_ == kForever,
          .finishing = finishing,
          .running = last.running,
          .last = &last,
          .ended = ended_,
          .failed = failed_});
    tick_timer_.expires_at(tick_timer_.expiry() + kTick);
    tick(show);
  });
}

}  // namespace sluice
