// Responder: the way back to one client, whatever HTTP version carries it. Every write is awaited
// until the transport has taken it: that is the back-pressure, and nothing is buffered beyond the
// one write. False from any of them: the client is gone. A client that goes while its handler runs
// cancels the handler's task (asio::cancellation_type::terminal), at whatever it awaits; so does
// the end of a drain's grace, unless the handler has asked to be told of it. Thread: its I/O
// thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "gateway/asio.h"
#include "gateway/http_message.h"

namespace sluice {

// What is said to whom a drain refuses, and to those whose answers its grace did not let finish.
inline constexpr char kDrainingCode[] = "draining";
inline constexpr char kGraceOver[] =
    "this gateway is being stopped, and the answer was not complete within its grace "
    "(--http-drain-grace-ms)";

class Responder {
 public:
  virtual ~Responder() = default;

  // The whole answer, head and body in one write. Once, and instead of the other three.
  [[nodiscard]] virtual Task<bool> respond(ResponseHead head, std::string body) = 0;

  // Begins a streamed answer: its head and `first` (may be empty) leave in one write.
  [[nodiscard]] virtual Task<bool> begin(ResponseHead head, std::string_view first) = 0;
  // `bytes` must live until it returns.
  [[nodiscard]] virtual Task<bool> write(std::string_view bytes) = 0;
  // Ends it; `last` (may be empty) and the end leave in one write.
  [[nodiscard]] virtual Task<bool> end(std::string_view last) = 0;

  // Whether respond or begin was called: after that an error can only be a last event in the
  // stream.
  [[nodiscard]] virtual bool committed() const noexcept = 0;

  // `tell` is called when the grace of a drain is over; the handler then ends its answer itself, in
  // a moment. Null: its task is cancelled. Not from inside `tell`.
  void when_expired(std::function<void()> tell) { tell_ = std::move(tell); }
  [[nodiscard]] bool expired() const noexcept { return expired_; }
  // False: nobody wants to be told.
  bool expire() {
    expired_ = true;
    if (tell_) tell_();
    return tell_ != nullptr;
  }

 private:
  std::function<void()> tell_;
  bool expired_ = false;
};

}  // namespace sluice
