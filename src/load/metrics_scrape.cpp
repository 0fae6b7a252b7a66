#include "load/metrics_scrape.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/listen_address.h"

namespace sluice {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds kPatience{2};
constexpr std::uint64_t kMostBytes = 16 << 20;

struct Place {
  ListenAddress at;
  std::string path;
};

std::optional<Place> place_of(std::string_view address) {
  constexpr std::string_view kScheme = "http://";
  if (address.starts_with(kScheme)) address.remove_prefix(kScheme.size());
  const std::size_t slash = std::min(address.find('/'), address.size());
  auto at = parse_host_port(address.substr(0, slash));
  if (!at) return std::nullopt;
  const std::string_view path = address.substr(slash);
  return Place{std::move(*at), path.size() > 1 ? std::string(path) : "/metrics"};
}

}  // namespace

Task<std::optional<std::string>> scrape_metrics(const std::string& address) {
  const std::optional<Place> place = place_of(address);
  if (!place) co_return std::nullopt;
  const auto executor = co_await asio::this_coro::executor;
  tcp::resolver resolver(executor);
  beast::tcp_stream stream(executor);
  stream.expires_after(kPatience);
  const std::string port = std::to_string(place->at.port);
  const auto [unknown, found] = co_await resolver.async_resolve(place->at.host, port, kAwait);
  if (unknown) co_return std::nullopt;
  const auto [refused, endpoint] = co_await stream.async_connect(found, kAwait);
  if (refused) co_return std::nullopt;
  http::request<http::empty_body> request(http::verb::get, place->path, 11);
  request.set(http::field::host, place->at.text());
  request.set(http::field::connection, "close");
  const auto [unsent, written] = co_await http::async_write(stream, request, kAwait);
  if (unsent) co_return std::nullopt;
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMostBytes);
  const auto [failed, read] = co_await http::async_read(stream, buffer, parser, kAwait);
  if (failed || parser.get().result() != http::status::ok) co_return std::nullopt;
  co_return std::move(parser.get().body());
}

}  // namespace sluice
