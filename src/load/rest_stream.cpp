#include "load/rest_stream.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <utility>

#include "base/listen_address.h"
#include "load/rest_target.h"

namespace sluice {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr int kSmallWindow = 4096;
constexpr std::size_t kReadBytes = 2048;

http::request<http::string_body> request_head(const TargetOptions& options) {
  http::request<http::string_body> request(http::verb::post, options.path + "/v1/chat/completions",
                                           11);
  request.set(http::field::host, host_port(options.host, std::stoi(options.port)));
  request.set(http::field::content_type, "application/json");
  request.set(http::field::accept, "text/event-stream");
  request.set(http::field::user_agent, "sluice-bench");
  if (!options.key.empty()) request.set(http::field::authorization, "Bearer " + options.key);
  return request;
}

}  // namespace

RestStream::RestStream(std::size_t index, LoadEvents& events, const RestPlace& place,
                       asio::io_context& io)
    : LoadStream(index, events),
      place_(place),
      io_(io),
      pause_(io),
      request_(request_head(place.options)) {}

void RestStream::start(PlannedRequest& planned) {
  request_.body() = rest_body(planned.request);
  request_.prepare_payload();
  asio::co_spawn(io_, answer(), asio::detached);
}

void RestStream::cancel(std::uint64_t number) noexcept {
  asio::post(io_, [this, number] {
    if (!running_ || times().number != number) return;
    cancel_ = true;
    pause_.cancel();
    close();
  });
}

RestStream::Plain* RestStream::lowest() noexcept {
  if (secure_) return &secure_->next_layer();
  return plain_ ? &*plain_ : nullptr;
}

void RestStream::close() noexcept {
  if (Plain* const stream = lowest()) stream->close();
}

Task<void> RestStream::answer() {
  outcome_ = {};
  events_in_.clear();
  running_ = true;
  cancel_ = false;
  if (is_slow() != small_window_) close();
  Plain* const kept = lowest();
  co_await exchange(kept == nullptr || !kept->socket().is_open());
  running_ = false;
  // Told last: the stream may begin its next request within.
  end(outcome_);
}

Task<bool> RestStream::connect() {
  buffer_.clear();
  secure_.reset();
  plain_.reset();
  place_.tls ? static_cast<void>(secure_.emplace(io_, *place_.tls))
             : static_cast<void>(plain_.emplace(io_));
  Plain& stream = *lowest();
  small_window_ = is_slow();
  boost::system::error_code error;
  if (place_.options.timeout.count() > 0) stream.expires_after(place_.options.timeout);
  for (const tcp::endpoint& endpoint : place_.endpoints) {
    stream.socket().close(error);
    stream.socket().open(endpoint.protocol(), error);
    if (!error && small_window_) {
      stream.socket().set_option(asio::socket_base::receive_buffer_size(kSmallWindow), error);
    }
    if (error) continue;
    std::tie(error) = co_await stream.async_connect(endpoint, kAwait);
    if (!error || cancel_) break;
  }
  if (!error) stream.socket().set_option(tcp::no_delay(true), error);
  if (!error && secure_) {
    SSL_set_tlsext_host_name(secure_->native_handle(), place_.options.host.c_str());
    std::tie(error) = co_await secure_->async_handshake(asio::ssl::stream_base::client, kAwait);
  }
  if (!error && !cancel_) co_return true;
  outcome_.error = cancel_ ? "cancelled" : "connect";
  close();
  co_return false;
}

Task<void> RestStream::exchange(bool fresh) {
  for (;;) {
    if (fresh) {
      const bool connected = co_await connect();
      if (!connected) co_return;
    } else if (place_.options.timeout.count() > 0) {
      lowest()->expires_after(place_.options.timeout);
    }
    Parser parser;
    parser.body_limit(boost::none);
    Sent sent = Sent::kNo;
    if (secure_) {
      sent = co_await ask(*secure_, parser);
      if (sent == Sent::kYes) co_await read_answer(*secure_, parser);
    } else {
      sent = co_await ask(*plain_, parser);
      if (sent == Sent::kYes) co_await read_answer(*plain_, parser);
    }
    if (sent == Sent::kNotTaken && !fresh && !cancel_) {
      outcome_ = {};
      fresh = true;
      continue;
    }
    if (Plain* const stream = lowest()) stream->expires_never();
    if (sent != Sent::kYes || !outcome_.error.empty() || small_window_ || !parser.is_done() ||
        !parser.keep_alive()) {
      close();
    }
    co_return;
  }
}

template <typename Stream>
Task<RestStream::Sent> RestStream::ask(Stream& stream, Parser& parser) {
  const auto [unsent, written] = co_await http::async_write(stream, request_, kAwait);
  if (unsent) {
    fail_with(unsent);
    co_return Sent::kNotTaken;
  }
  const auto [unread, read] = co_await http::async_read_header(stream, buffer_, parser, kAwait);
  if (!unread) co_return Sent::kYes;
  fail_with(unread);
  co_return read == 0 && unread != beast::error::timeout ? Sent::kNotTaken : Sent::kNo;
}

// Beast's own async_read_some() would come back only when a body's buffer is full or its end was
// there: what has come is parsed here at once, for its time is what is measured.
template <typename Stream>
Task<void> RestStream::read_answer(Stream& stream, Parser& parser) {
  parser.eager(true);
  boost::system::error_code error = parse(parser);  // what came with the header
  while (!error && !cancel_ && !parser.is_done()) {
    const Duration wait = events_in_.done() ? Duration::zero() : pause();
    if (wait > Duration::zero()) {
      pause_.expires_after(wait);
      co_await pause_.async_wait(kAwait);
      if (cancel_) break;
    }
    std::size_t bytes = 0;
    const auto room = buffer_.prepare(kReadBytes);
    std::tie(error, bytes) = co_await stream.async_read_some(room, kAwait);
    buffer_.commit(bytes);
    if (error == asio::error::eof) {
      error = {};
      parser.put_eof(error);
    } else if (!error) {
      error = parse(parser);
    }
  }
  if (error && !cancel_) {
    fail_with(error);
    co_return;
  }
  note_end(parser);
}

boost::system::error_code RestStream::parse(Parser& parser) {
  boost::system::error_code error;
  while (!error && buffer_.size() > 0 && !parser.is_done()) {
    buffer_.consume(parser.put(buffer_.data(), error));
  }
  if (error == http::error::need_more) error = {};
  std::string& body = parser.get().body();
  const std::uint32_t tokens =
      parser.get().result() == http::status::ok ? events_in_.take(body) : 0;
  body.clear();
  if (tokens > 0 && receive(tokens)) cancel_ = true;
  return error;
}

void RestStream::note_end(Parser& parser) {
  if (cancel_) {
    outcome_.error = "cancelled";
  } else if (parser.get().result() != http::status::ok) {
    outcome_.error = std::to_string(parser.get().result_int());
  } else if (!events_in_.error().empty()) {
    outcome_.error = events_in_.error();
  } else if (!events_in_.done()) {
    outcome_.error = "no end";
  }
  if (const auto& usage = events_in_.usage()) {
    outcome_.prompt_tokens = usage->prompt_tokens;
    outcome_.completion_tokens = usage->completion_tokens;
    outcome_.cached_tokens = usage->cached_tokens;
  }
}

void RestStream::fail_with(boost::system::error_code error) {
  outcome_.error = cancel_                          ? "cancelled"
                   : error == beast::error::timeout ? "timeout"
                                                    : "connection lost";
}

}  // namespace sluice
