// RestStream: one connection to the REST API, and the request on it. Bounded by a line of the
// answer and the socket's buffers; a slow reader's are small. Thread: as LoadStream says; all of
// the connection on its io_context's.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>
#include <string>

#include "gateway/asio.h"
#include "load/load_options.h"
#include "load/load_stream.h"
#include "load/sse_counter.h"

namespace sluice {

// What the streams of a target have in common.
struct RestPlace {
  TargetOptions options;
  std::vector<asio::ip::tcp::endpoint> endpoints;
  std::shared_ptr<asio::ssl::context> tls;  // none: plain text
};

class RestStream final : public LoadStream {
 public:
  RestStream(std::size_t index, LoadEvents& events, const RestPlace& place, asio::io_context& io);

 private:
  using Plain = boost::beast::tcp_stream;
  using Secure = asio::ssl::stream<Plain>;
  using Parser = boost::beast::http::response_parser<boost::beast::http::string_body>;
  enum class Sent { kYes, kNo, kNotTaken };  // kNotTaken: the kept connection had been closed

  void start(PlannedRequest& planned) override;
  void cancel(std::uint64_t number) noexcept override;

  Task<void> answer();
  Task<bool> connect();
  Task<void> exchange(bool fresh);
  template <typename Stream>
  Task<Sent> ask(Stream& stream, Parser& parser);
  template <typename Stream>
  Task<void> read_answer(Stream& stream, Parser& parser);
  // What lies in the buffer.
  boost::system::error_code parse(Parser& parser);
  void note_end(Parser& parser);
  void fail_with(boost::system::error_code error);
  void close() noexcept;
  [[nodiscard]] Plain* lowest() noexcept;

  const RestPlace& place_;
  asio::io_context& io_;
  asio::steady_timer pause_;
  std::optional<Plain> plain_;
  std::optional<Secure> secure_;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::request<boost::beast::http::string_body> request_;
  SseCounter events_in_;
  LoadOutcome outcome_;
  bool running_ = false;
  bool small_window_ = false;  // of the connection
  bool cancel_ = false;
};

}  // namespace sluice
