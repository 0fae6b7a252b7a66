#include "replica/keeper.h"

#include <algorithm>
#include <utility>

#include "access/keys.h"
#include "base/concat.h"
#include "base/log.h"
#include "base/process.h"
#include "replica/credentials.h"
#include "replica/health.h"
#include "scheduler/admission.h"
#include "scheduler/engine_loop.h"
#include "stream/doorbell.h"

namespace sluice {
namespace {

// Counting open descriptors takes as long as there are many.
constexpr int kTicksPerRefresh = 8;

// For the last statuses, once the loop has ended all requests.
constexpr std::chrono::seconds kLastWords{2};

}  // namespace

void warn_of_limits_not_held(const KeyRing& keys) noexcept try {
  const std::size_t metered = keys.metered();
  if (metered == 0) return;
  log_warning("replica", concat(metered,
                                " keys have rpm, tpm or streams: gateways hold their callers to "
                                "them, but calls over gRPC to this server are not counted"));
} catch (const std::exception&) {
  // Out of memory: a hint is lost.
}

Keeper::Keeper(Charges charges)
    : charges_(std::move(charges)), thread_([this]() noexcept { run(); }) {}

Keeper::~Keeper() {
  begin_drain(std::chrono::milliseconds{0});
  thread_.join();
}

void Keeper::set_warm() noexcept {
  warm_ = true;
  charges_.health.set_serving(true);
}

void Keeper::begin_drain(std::chrono::milliseconds grace) noexcept {
  charges_.health.retire();
  charges_.calls.close();
  charges_.admission.close();
  // A century stands for ever, and can be added to the time.
  const TimePoint until = charges_.clock.now() + std::min<std::chrono::milliseconds>(
                                                     grace, std::chrono::hours{24 * 365 * 100});
  {
    const MutexLock lock(mutex_);
    const bool first = !drain_until_;
    drain_until_ = std::min(drain_until_.value_or(kForever), until);
    if (!first) return;
  }
  changed_.notify_all();
  log_info("replica", concat("draining: ", charges_.calls.count(), " requests still run, grace ",
                             grace.count(), " ms (--drain-grace-ms)"));
}

bool Keeper::draining() const noexcept { return drain_until().has_value(); }

void Keeper::wait_drained() noexcept {
  const MutexLock lock(mutex_);
  while (!drained_) changed_.wait(mutex_);
}

std::optional<TimePoint> Keeper::drain_until() const noexcept {
  const MutexLock lock(mutex_);
  return drain_until_;
}

void Keeper::run() noexcept {
  while (!draining()) {
    look_after();
    const TimePoint next = charges_.clock.now() + kTick;
    const MutexLock lock(mutex_);
    while (!drain_until_ && charges_.clock.now() < next)
      charges_.clock.wait_until(changed_, mutex_, next);
  }
  drain();
  const MutexLock lock(mutex_);
  drained_ = true;
  changed_.notify_all();
}

void Keeper::look_after() noexcept {
  if (charges_.keys.refresh()) warn_of_limits_not_held(charges_.keys);
  if (charges_.tls != nullptr) charges_.tls->refresh();
  if (++ticks_ % kTicksPerRefresh == 0) charges_.process.refresh();
  charges_.cut_stuck_calls();
  const bool is_stuck = stuck();
  if (!warm_ || charges_.health.serving() != is_stuck || draining()) return;
  charges_.health.set_serving(!is_stuck);
  if (is_stuck) {
    log_error("replica",
              concat("the engine has not come round for ", charges_.limits.stall_limit.count(),
                     " ms (--stall-limit-ms): health says NOT_SERVING"));
  } else {
    log_info("replica", "the engine has come round: health says SERVING");
  }
}

// In ticks and not by the clock: a machine that stood still is no stuck engine.
bool Keeper::stuck() noexcept {
  const TimePoint turn = charges_.loop.last_turn();
  unanswered_ = turn == seen_turn_ ? unanswered_ + 1 : 0;
  seen_turn_ = turn;
  charges_.doorbell.ring();
  return unanswered_ * kTick > charges_.limits.stall_limit;
}

void Keeper::drain() noexcept {
  while (charges_.calls.count() > 0) {
    const TimePoint now = charges_.clock.now();
    const TimePoint until = drain_until().value_or(now);
    if (now >= until) break;
    // In slices, for the grace may be shortened meanwhile.
    if (charges_.calls.wait_empty(charges_.clock, std::min(until, now + kTick))) break;
  }
  charges_.loop.request_stop();
  const bool all_ended =
      charges_.calls.wait_empty(charges_.clock, charges_.clock.now() + kLastWords);
  if (!all_ended)
    log_warning("replica", concat(charges_.calls.count(), " requests did not end by themselves"));
  charges_.health.end_watches();
}

}  // namespace sluice
