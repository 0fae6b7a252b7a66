// Http1Session: one client's connection, from its first byte to its last: requests one after
// another, pipelined ones too, each read whole, handed to the handler and answered before the next
// is looked at. What HTTP forbids or a bound refuses is answered here, in OpenAI's error shape.
// Bounded by GatewayLimits' connection part; at each bound a status and the end of the connection.
// Thread: its I/O thread.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "gateway/client_socket.h"
#include "gateway/gateway_limits.h"
#include "gateway/held_bodies.h"
#include "gateway/http1_parser.h"
#include "gateway/http1_responder.h"
#include "gateway/http_handler.h"
#include "gateway/http_metrics.h"

namespace sluice {

class Http1Session {
 public:
  // `tls`: null without. The others outlive this.
  Http1Session(asio::ip::tcp::socket socket, std::shared_ptr<asio::ssl::context> tls,
               const GatewayLimits& limits, HttpMetrics& metrics, HeldBodies& held_bodies,
               IoThread& io, const HttpHandler& handler, const HttpRules& rules);

  // Until the connection is closed.
  [[nodiscard]] Task<void> run();

  // Ends it after the answer that is under way; at once between two requests.
  void drain() noexcept;
  // Begun in a drain: it serves one request, and ends.
  void serve_only_one() noexcept { only_one_ = true; }
  // The grace is over: the answer under way is told to end (Responder::when_expired), or its
  // handler cancelled; a client that has nothing of it yet gets 503.
  void expire() noexcept;
  // Ends it now; a running handler is cancelled.
  void cut() noexcept;

 private:
  enum class Got { kRequest, kRefusal, kNothing };

  [[nodiscard]] Task<bool> handshake();
  // False: the connection has served its last.
  [[nodiscard]] Task<bool> serve_one();
  [[nodiscard]] Task<Got> read_request(Http1Parser& parser, HeldBodies::Share& held);
  [[nodiscard]] Task<bool> invite_body(const Http1Parser& parser);
  [[nodiscard]] Task<bool> answer(Http1Parser& parser);
  [[nodiscard]] Task<void> handle(HttpRequest& request, Http1Responder& responder);
  [[nodiscard]] Task<void> refuse(int status, std::string_view message, const HttpHeaders& asked,
                                  std::string_view code = {});
  void count_bytes() noexcept;

  const GatewayLimits& limits_;
  HttpMetrics& metrics_;
  HeldBodies& held_bodies_;
  IoThread& io_;
  const HttpHandler& handler_;
  const HttpRules& rules_;
  ClientSocket socket_;
  std::string client_identity_;
  Http1Responder* answering_ = nullptr;
  asio::cancellation_signal* cancel_ = nullptr;  // of the handler
  bool idle_ = false;
  bool draining_ = false;
  bool only_one_ = false;
  bool cut_ = false;
  std::uint64_t counted_received_ = 0;
  std::uint64_t counted_sent_ = 0;
};

}  // namespace sluice
