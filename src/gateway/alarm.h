// Alarm: wakes a waiting coroutine when a time has come. Setting it costs nothing while an earlier
// alarm is still to ring, so that it may be set before every wait; it may therefore ring early, and
// its owner looks at the time. Bounded by one timer. Thread: its I/O thread.
#pragma once

#include <memory>
// after <utility>, which asio.h includes
#include "gateway/asio.h"
// behind asio.h
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "gateway/wake_up.h"

namespace sluice {

class Alarm {
 public:
  // `target` lives as long as this.
  Alarm(asio::io_context& io, WakeUp& target) : ringing_(std::make_shared<Ringing>(io, target)) {}
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  void set(TimePoint when);

 private:
  struct Ringing {
    Ringing(asio::io_context& io, WakeUp& who) : timer(io), target(who) {}
    asio::steady_timer timer;
    WakeUp& target;
    TimePoint armed_for = kForever;
  };
  std::shared_ptr<Ringing> ringing_;  // what rings after this is gone finds nothing
};

}  // namespace sluice
