// WakeUp: one coroutine waits until it is told to go on. Telling it resumes it at once, inside the
// call, without a turn of the loop: that is what makes a token cheap. Nothing is remembered:
// whoever tells has left something to be found. A cancelled wait returns, too. It must outlive its
// waiter. Thread: its I/O thread.
#pragma once

#include <optional>
#include <utility>

#include "gateway/asio.h"
// behind asio.h
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace sluice {

class WakeUp {
 public:
  WakeUp() = default;
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  // One waiter at a time.
  [[nodiscard]] Task<> wait() {
    return asio::async_initiate<const Token, void()>(
        [this](Waiter waiter) {
          auto slot = asio::get_associated_cancellation_slot(waiter);
          waiter_.emplace(std::move(waiter));
          // Not resumed inside the cancellation itself: that is still using the slot.
          if (slot.is_connected()) slot.assign([this](asio::cancellation_type) { resume_later(); });
        },
        token_);
  }

  void notify() {
    if (!waiter_) return;
    Waiter waiter = std::move(*waiter_);
    waiter_.reset();
    std::move(waiter)();
  }

 private:
  using Token = asio::use_awaitable_t<>;
  using Waiter = asio::async_result<Token, void()>::handler_type;

  void resume_later() {
    if (!waiter_) return;
    Waiter waiter = std::move(*waiter_);
    waiter_.reset();
    asio::post(std::move(waiter));
  }

  static constexpr Token token_{};
  std::optional<Waiter> waiter_;
};

}  // namespace sluice
