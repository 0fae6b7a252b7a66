#include "gateway/http1_session.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "base/concat.h"
#include "base/log.h"

namespace sluice {
namespace {

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

TimePoint from_now(std::chrono::milliseconds wait) noexcept {
  return std::chrono::steady_clock::now() + wait;
}

}  // namespace

Http1Session::Http1Session(asio::ip::tcp::socket socket, std::shared_ptr<asio::ssl::context> tls,
                           const GatewayLimits& limits, HttpMetrics& metrics,
                           HeldBodies& held_bodies, IoThread& io, const HttpHandler& handler,
                           const HttpRules& rules)
    : limits_(limits),
      metrics_(metrics),
      held_bodies_(held_bodies),
      io_(io),
      handler_(handler),
      rules_(rules),
      socket_(std::move(socket), std::move(tls), limits, io) {}

Task<void> Http1Session::run() {
  try {
    const bool usable = !socket_.secure() || co_await handshake();
    while (usable && !draining_ && co_await serve_one()) {
    }
  } catch (const std::exception& failure) {  // out of memory
    log_error("http", concat("a connection failed: ", failure.what()));
  }
  answering_ = nullptr;
  co_await socket_.finish();
  count_bytes();
}

Task<bool> Http1Session::handshake() {
  const bool done = co_await socket_.handshake();
  if (done) {
    client_identity_ = socket_.client_identity();
  } else if (socket_.write_timed_out()) {
    metrics_.timed_out(HttpTimeout::kHandshake);
  } else {
    metrics_.connection_refused(ConnectionRefusal::kTls);
  }
  co_return done;
}

void Http1Session::drain() noexcept {
  draining_ = true;
  if (answering_ != nullptr) answering_->close_after();
  if (idle_) socket_.close();
}

void Http1Session::expire() noexcept {
  drain();
  if (answering_ == nullptr || answering_->expired()) return;
  if (!answering_->expire() && cancel_ != nullptr) cancel_->emit(asio::cancellation_type::terminal);
}

void Http1Session::cut() noexcept {
  draining_ = cut_ = true;
  socket_.close();
}

Task<bool> Http1Session::serve_one() {
  Http1Parser parser(limits_);
  HeldBodies::Share held(held_bodies_);
  switch (co_await read_request(parser, held)) {
    case Got::kNothing:
      co_return false;
    case Got::kRefusal:
      co_await refuse(parser.refusal()->status, parser.refusal()->message,
                      parser.request().headers);
      co_return false;
    case Got::kRequest:
      break;
  }
  co_return co_await answer(parser);
}

Task<Http1Session::Got> Http1Session::read_request(Http1Parser& parser, HeldBodies::Share& held) {
  TimePoint until = from_now(limits_.idle_timeout);
  HttpTimeout waiting_for = HttpTimeout::kIdle;
  for (;;) {
    if (!socket_.input().empty()) {
      if (waiting_for == HttpTimeout::kIdle) {
        parser.request().arrived_at = from_now({});
        until = from_now(limits_.header_timeout);
        waiting_for = HttpTimeout::kHeader;
      }
      socket_.consume(parser.feed(socket_.input()));
      if (!held.grow_to(parser.request().body.size())) {
        parser.refuse(503, concat("the long bodies of all requests together are above ",
                                  limits_.max_held_body_bytes,
                                  " bytes (--max-held-body-bytes); try again later"));
      }
      if (parser.refusal()) co_return Got::kRefusal;
      if (parser.done()) co_return Got::kRequest;
      if (parser.head_done()) {
        if (std::exchange(waiting_for, HttpTimeout::kBody) == HttpTimeout::kHeader) {
          if (rules_.wants_body && !rules_.wants_body(parser.request())) {
            parser.request().body = {};
            co_return Got::kRequest;
          }
          if (!co_await invite_body(parser)) co_return Got::kNothing;
        }
        // Byte by byte a body would never be late.
        until = std::min(from_now(limits_.body_timeout),
                         parser.request().arrived_at + limits_.request_timeout);
      }
    }
    idle_ = waiting_for == HttpTimeout::kIdle;
    const ClientSocket::Fill filled = co_await socket_.fill(until);
    idle_ = false;
    if (filled == ClientSocket::Fill::kMore) continue;
    if (filled == ClientSocket::Fill::kTimedOut) {
      metrics_.timed_out(waiting_for);
      if (waiting_for != HttpTimeout::kIdle) {
        co_await refuse(408,
                        waiting_for == HttpTimeout::kHeader
                            ? "the request's head did not come within --header-timeout-ms"
                            : "nothing of the request's body came for --body-timeout-ms, or "
                              "not all of it within --request-timeout-ms",
                        parser.request().headers);
      }
    }
    co_return Got::kNothing;
  }
}

// To a client that waits for it before it sends its body.
Task<bool> Http1Session::invite_body(const Http1Parser& parser) {
  if (!parser.expects_continue() || !socket_.input().empty()) co_return true;
  co_return co_await socket_.write(
      {asio::const_buffer(kContinue.data(), kContinue.size()), {}, {}});
}

Task<bool> Http1Session::answer(Http1Parser& parser) {
  HttpRequest& request = parser.request();
  request.client_identity = client_identity_;
  Http1Responder responder(
      socket_, io_,
      {.http10 = parser.http10(),
       .head_only = request.method == "HEAD",
       .keep_alive = parser.done() && parser.keep_alive() && !draining_ && !only_one_});
  metrics_.requests.add();
  answering_ = &responder;
  co_await handle(request, responder);
  answering_ = nullptr;
  if (socket_.write_timed_out()) metrics_.timed_out(HttpTimeout::kWrite);
  count_bytes();
  co_return responder.keep_alive() && !socket_.overflowed();
}

// A client that goes cancels the handler, at whatever it waits for.
Task<void> Http1Session::handle(HttpRequest& request, Http1Responder& responder) {
  asio::cancellation_signal cancel;
  bool gone = !socket_.watch([&] {
    gone = true;
    cancel.emit(asio::cancellation_type::terminal);
  });
  std::exception_ptr failure;
  cancel_ = &cancel;
  if (!gone) {
    const auto [thrown] = co_await asio::co_spawn(
        io_.context().get_executor(),
        [&]() -> Task<void> { co_await handler_(request, responder, io_); },
        asio::bind_cancellation_slot(cancel.slot(), asio::as_tuple(asio::use_awaitable)));
    failure = thrown;
  }
  cancel_ = nullptr;
  socket_.unwatch();
  if (gone || socket_.broken()) {
    const bool ours = cut_ || responder.expired() || socket_.write_timed_out();
    if (!ours && !responder.complete()) metrics_.clients_gone.add();
  } else if (responder.expired() && !responder.committed()) {
    co_await refuse(503, kGraceOver, request.headers, kDrainingCode);
  } else if (failure && !responder.expired()) {
    log_error("http", "a handler failed; its connection is closed");
  } else if (!responder.committed()) {
    co_await refuse(500, "the server gave no answer", request.headers);
  }
}

Task<void> Http1Session::refuse(int status, std::string_view message, const HttpHeaders& asked,
                                std::string_view code) {
  metrics_.request_refused(status);
  ResponseHead head{status, {}};
  head.headers.add("Content-Type", "application/json");
  if (status == 503) head.headers.add("Retry-After", "1");
  if (rules_.add_headers) rules_.add_headers(asked, head.headers);
  Http1Responder responder(socket_, io_, {.keep_alive = false});
  static_cast<void>(
      co_await responder.respond(std::move(head), http_error_body(status, message, code)));
}

void Http1Session::count_bytes() noexcept {
  const std::uint64_t received = socket_.received_bytes();
  const std::uint64_t sent = socket_.sent_bytes();
  metrics_.received_bytes.add(
      static_cast<double>(received - std::exchange(counted_received_, received)));
  metrics_.sent_bytes.add(static_cast<double>(sent - std::exchange(counted_sent_, sent)));
}

}  // namespace sluice
