// Responder: the way back to one client, whatever HTTP version carries it. Every write is awaited
// until the transport has taken it: that is the back-pressure, and nothing is buffered beyond the
// one write. False from any of them: the client is gone. A client that goes while its handler runs
// cancels the handler's task (asio::cancellation_type::terminal), at whatever it awaits. Thread:
// its I/O thread.
#pragma once

#include <string>
#include <string_view>

#include "gateway/asio.h"
#include "gateway/http_message.h"

namespace sluice {

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
};

}  // namespace sluice
