#include "gateway/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/concat.h"
#include "base/gate.h"
#include "base/listen_address.h"
#include "base/log.h"
#include "gateway/held_bodies.h"
#include "gateway/http1_session.h"

namespace sluice {
namespace {

constexpr char kListenFlag[] = "--listen";

using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr int kBacklog = 4096;
constexpr int kNotSentLowWater = 16 << 10;  // bytes that the kernel holds beyond the window
constexpr std::chrono::milliseconds kPauseWithoutDescriptors{100};

// Accepted sockets inherit all of it.
Result<tcp::acceptor> listen_on(asio::io_context& context, const tcp::endpoint& endpoint) {
  using NotSentLowWater = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_NOTSENT_LOWAT>;
  using KeepIdle = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  using KeepInterval = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPINTVL>;
  using KeepCount = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPCNT>;
  tcp::acceptor acceptor(context);
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  error_code ignored;
  acceptor.set_option(tcp::acceptor::reuse_address(true), ignored);
  if (endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(true), ignored);
  acceptor.set_option(tcp::no_delay(true), ignored);
  acceptor.set_option(NotSentLowWater(kNotSentLowWater), ignored);
  acceptor.set_option(asio::socket_base::keep_alive(true), ignored);
  acceptor.set_option(KeepIdle(60), ignored);
  acceptor.set_option(KeepInterval(10), ignored);
  acceptor.set_option(KeepCount(3), ignored);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(kBacklog, error);
  if (error) return fail(Code::kUnavailable, error.message());
  return acceptor;
}

bool out_of_descriptors(const error_code& error) noexcept {
  return error == asio::error::no_descriptors || error == asio::error::no_buffer_space ||
         error == asio::error::no_memory ||
         error == error_code(ENFILE, boost::system::system_category());
}

}  // namespace

class HttpServer::Core {
 public:
  Core(const GatewayLimits& limits, Metrics& metrics, IoThreads& threads, HttpHandler handler,
       HttpRules rules)
      : limits_(limits),
        metrics_(metrics),
        threads_(threads),
        handler_(std::move(handler)),
        rules_(std::move(rules)),
        held_bodies_(limits.max_held_body_bytes, metrics),
        sessions_(threads.size()) {
    metrics_.connections_limit.set(limits.max_connections);
  }

  [[nodiscard]] Result<void> listen(const HttpServerOptions& options);
  void accept_all();
  [[nodiscard]] std::string address() const { return address_.text(); }
  void drain();
  void cut();
  [[nodiscard]] bool wait_ended(TimePoint until) noexcept {
    return gate_.wait_empty(clock_, until) && posts_.wait_empty(clock_, until);
  }
  [[nodiscard]] const GatewayLimits& limits() const noexcept { return limits_; }

 private:
  [[nodiscard]] Task<void> accept(tcp::acceptor& acceptor, Gate::Pass pass);
  [[nodiscard]] Task<void> pause(const error_code& why);
  void take(tcp::socket socket, IoThread& io);
  [[nodiscard]] Task<void> serve(tcp::socket socket, std::shared_ptr<asio::ssl::context> tls,
                                 IoThread& io, Gate::Pass pass);
  void on_each_thread(void (Http1Session::*end)() noexcept);

  const GatewayLimits limits_;
  HttpMetrics metrics_;
  IoThreads& threads_;
  const HttpHandler handler_;
  const HttpRules rules_;
  HeldBodies held_bodies_;
  SystemClock clock_;
  ListenAddress address_;

  // Of thread 0, which accepts.
  std::vector<tcp::acceptor> acceptors_;
  std::optional<TlsContext> tls_;
  std::size_t next_thread_ = 0;
  bool pausing_ = false;

  std::vector<std::unordered_set<Http1Session*>> sessions_;  // each set is its thread's own
  std::atomic<std::uint32_t> connections_{0};
  std::atomic<bool> draining_{false};
  Gate gate_;   // passed by each connection and each accepting task
  Gate posts_;  // passed by what runs on a thread for a moment; never closed
};

Result<void> HttpServer::Core::listen(const HttpServerOptions& options) {
  auto address = parse_listen_address(options.listen, kListenFlag);
  if (!address) return tl::unexpected(std::move(address.error()));
  address_ = std::move(*address);
  if (options.tls.enabled()) {
    auto tls = TlsContext::load(options.tls);
    if (!tls) return tl::unexpected(std::move(tls.error()));
    tls_ = std::move(*tls);
  }
  error_code error;
  tcp::resolver resolver(threads_[0].context());
  const auto found =
      resolver.resolve(address_.host, std::to_string(address_.port), tcp::resolver::passive, error);
  std::string why = error.message();
  for (const auto& entry : found) {
    const auto port = static_cast<std::uint16_t>(address_.port);
    auto acceptor = listen_on(threads_[0].context(), {entry.endpoint().address(), port});
    if (!acceptor) {
      why = std::move(acceptor.error().message);
      continue;
    }
    address_.port = acceptor->local_endpoint().port();
    acceptors_.push_back(std::move(*acceptor));
  }
  if (!acceptors_.empty()) return {};
  return fail(Code::kUnavailable,
              concat("can't listen on ", address_.text(), " (", kListenFlag, "): ", why));
}

void HttpServer::Core::accept_all() {
  for (tcp::acceptor& acceptor : acceptors_) {
    if (auto pass = gate_.enter()) {
      asio::co_spawn(threads_[0].context(), accept(acceptor, std::move(*pass)), asio::detached);
    }
  }
}

Task<void> HttpServer::Core::accept(tcp::acceptor& acceptor, [[maybe_unused]] Gate::Pass pass) {
  while (!draining_) {
    IoThread& io = threads_[next_thread_++ % threads_.size()];
    auto [error, socket] = co_await acceptor.async_accept(io.context(), kAwait);
    if (error) {
      if (out_of_descriptors(error)) co_await pause(error);
      continue;  // the client went before it was accepted, or there is a drain
    }
    pausing_ = false;
    take(std::move(socket), io);
  }
}

Task<void> HttpServer::Core::pause(const error_code& why) {
  metrics_.connection_refused(ConnectionRefusal::kDescriptors);
  if (!std::exchange(pausing_, true)) {
    log_error("http", concat("can't accept connections: ", why.message(), "; trying again every ",
                             kPauseWithoutDescriptors.count(), " ms"));
  }
  asio::steady_timer timer(threads_[0].context(), kPauseWithoutDescriptors);
  co_await timer.async_wait(kAwait);
}

void HttpServer::Core::take(tcp::socket socket, IoThread& io) {
  auto pass = gate_.enter();
  if (!pass) return;
  error_code error;
  socket.non_blocking(true, error);
  if (connections_.fetch_add(1) >= limits_.max_connections) {
    connections_.fetch_sub(1);
    return metrics_.connection_refused(ConnectionRefusal::kLimit);
  }
  metrics_.accepted.add();
  auto tls = tls_ ? tls_->current(clock_.now()) : nullptr;
  asio::co_spawn(io.context(), serve(std::move(socket), std::move(tls), io, std::move(*pass)),
                 asio::detached);
}

Task<void> HttpServer::Core::serve(tcp::socket socket, std::shared_ptr<asio::ssl::context> tls,
                                   IoThread& io, [[maybe_unused]] Gate::Pass pass) {
  metrics_.connections.add(1);
  Http1Session session(std::move(socket), std::move(tls), limits_, metrics_, held_bodies_, io,
                       handler_, rules_);
  auto& sessions = sessions_[io.index()];
  sessions.insert(&session);
  if (draining_) session.drain();
  co_await session.run();
  sessions.erase(&session);
  metrics_.connections.add(-1);
  connections_.fetch_sub(1);
}

void HttpServer::Core::on_each_thread(void (Http1Session::*end)() noexcept) {
  for (std::size_t index = 0; index < threads_.size(); ++index) {
    asio::post(threads_[index].context(), [this, index, end, pass = posts_.enter()] {
      for (Http1Session* session : sessions_[index]) (session->*end)();
    });
  }
}

void HttpServer::Core::drain() {
  if (draining_.exchange(true)) return;
  gate_.close();
  asio::post(threads_[0].context(), [this, pass = posts_.enter()] {
    error_code ignored;
    for (tcp::acceptor& acceptor : acceptors_) acceptor.close(ignored);
  });
  on_each_thread(&Http1Session::drain);
}

void HttpServer::Core::cut() { on_each_thread(&Http1Session::cut); }

HttpServer::HttpServer(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}

HttpServer::~HttpServer() {
  drain();
  cut();
  static_cast<void>(core_->wait_ended(kForever));
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      const GatewayLimits& limits, Metrics& metrics,
                                                      IoThreads& threads, HttpHandler handler) {
  auto core = std::make_unique<Core>(limits, metrics, threads, std::move(handler), options.rules);
  if (auto listening = core->listen(options); !listening) {
    return tl::unexpected(std::move(listening.error()));
  }
  core->accept_all();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(core)));
}

std::string HttpServer::address() const { return core_->address(); }

void HttpServer::drain() { core_->drain(); }

void HttpServer::cut() { core_->cut(); }

bool HttpServer::wait_drained() {
  const TimePoint until = std::chrono::steady_clock::now() + core_->limits().http_drain_grace;
  if (core_->wait_ended(until)) return true;
  cut();
  static_cast<void>(core_->wait_ended(kForever));
  return false;
}

}  // namespace sluice
