// Keeper: the thread that looks after a running replica. Each kTick it reads keys and certificates
// that changed, tells health whether the engine is stuck (it is rung each tick, and does not come
// round), and refreshes the process' metrics; when a drain is asked for it sees it through.
// A drain: health and admission are closed at once by whoever asks; the keeper waits until no
// request is left or the grace is over, stops the engine's loop, which ends the rest with
// UNAVAILABLE, and lets the last words go out.
// Thread: its own; the public functions any.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "contract/limits.h"

namespace sluice {

class Admission;
class Doorbell;
class EngineLoop;
class HealthService;
class KeyRing;
class ProcessMetrics;
class ServerTls;

// Says in the log that keys have limits which a replica does not hold, if any has.
void warn_of_limits_not_held(const KeyRing& keys) noexcept;

class Keeper {
 public:
  static constexpr std::chrono::milliseconds kTick{250};

  // What is looked after; all outlive the keeper.
  struct Charges {
    const Limits& limits;
    Clock& clock;
    KeyRing& keys;
    ServerTls* tls;  // null without TLS
    HealthService& health;
    Admission& admission;
    EngineLoop& loop;
    Doorbell& doorbell;
    ProcessMetrics& process;
    Gate& calls;
    std::function<void()> cut_stuck_calls;
  };

  explicit Keeper(Charges charges);
  // Drains without grace.
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Health may say SERVING from now on.
  void set_warm() noexcept;
  void begin_drain(std::chrono::milliseconds grace) noexcept EXCLUDES(mutex_);
  [[nodiscard]] bool draining() const noexcept EXCLUDES(mutex_);
  void wait_drained() noexcept EXCLUDES(mutex_);

 private:
  void run() noexcept EXCLUDES(mutex_);
  void look_after() noexcept EXCLUDES(mutex_);
  void drain() noexcept EXCLUDES(mutex_);
  [[nodiscard]] bool stuck() noexcept;
  [[nodiscard]] std::optional<TimePoint> drain_until() const noexcept EXCLUDES(mutex_);

  const Charges charges_;
  int ticks_ = 0;
  TimePoint seen_turn_{};  // the loop's last turn when looked at
  int unanswered_ = 0;     // rings since then

  std::atomic<bool> warm_ = false;
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<TimePoint> drain_until_ GUARDED_BY(mutex_);
  bool drained_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace sluice
