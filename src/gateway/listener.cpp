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
constexpr std::chrono::seconds kLastWords{1};  // for the ends of answers, when the grace is over

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
        grace_(threads[0].context()),
        notice_(threads[0].context()),
        sessions_(threads.size()) {
    metrics_.connections_limit.set(limits.max_connections);
  }

  [[nodiscard]] Result<void> listen(const HttpServerOptions& options);
  void accept_all();
  [[nodiscard]] std::string address() const { return address_.text(); }
  void drain();
  void end_grace();
  [[nodiscard]] bool wait_drained();
  // Ends everything under way, and waits for it.
  void end_now();

 private:
  [[nodiscard]] Task<void> accept(tcp::acceptor& acceptor, Gate::Pass pass);
  [[nodiscard]] Task<void> pause(const error_code& why);
  void take(tcp::socket socket, IoThread& io);
  [[nodiscard]] Task<void> serve(tcp::socket socket, std::shared_ptr<asio::ssl::context> tls,
                                 IoThread& io, std::optional<Gate::Pass> pass);
  void on_each_thread(void (Http1Session::*end)() noexcept);
  void stop_accepting();
  void cut() { on_each_thread(&Http1Session::cut); }

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
  asio::steady_timer grace_;   // of a drain; then kLastWords
  asio::steady_timer notice_;  // how long a drain keeps on accepting at least

  std::vector<std::unordered_set<Http1Session*>> sessions_;  // each set is its thread's own
  std::atomic<std::uint32_t> connections_{0};
  std::atomic<bool> draining_{false};
  std::atomic<bool> deaf_{false};  // accepts no more
  std::atomic<bool> grace_over_{false};
  Gate served_;     // passed by each connection before a drain
  Gate late_;       // … in a drain
  Gate accepting_;  // … by each accepting task
  Gate noticing_;   // … until the drain's notice is over
  Gate posts_;      // … by what a thread is to do, at once or when a timer rings
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
    if (auto pass = accepting_.enter()) {
      asio::co_spawn(threads_[0].context(), accept(acceptor, std::move(*pass)), asio::detached);
    }
  }
}

Task<void> HttpServer::Core::accept(tcp::acceptor& acceptor, [[maybe_unused]] Gate::Pass pass) {
  while (!deaf_) {
    IoThread& io = threads_[next_thread_++ % threads_.size()];
    auto [error, socket] = co_await acceptor.async_accept(io.context(), kAwait);
    if (error) {
      if (out_of_descriptors(error)) co_await pause(error);
      continue;  // the client went before it was accepted, or it is over
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
  auto pass = served_.enter();
  error_code error;
  socket.non_blocking(true, error);
  if (connections_.fetch_add(1) >= limits_.max_connections) {
    connections_.fetch_sub(1);
    return metrics_.connection_refused(ConnectionRefusal::kLimit);
  }
  metrics_.accepted.add();
  auto tls = tls_ ? tls_->current(clock_.now()) : nullptr;
  asio::co_spawn(io.context(), serve(std::move(socket), std::move(tls), io, std::move(pass)),
                 asio::detached);
}

Task<void> HttpServer::Core::serve(tcp::socket socket, std::shared_ptr<asio::ssl::context> tls,
                                   IoThread& io, std::optional<Gate::Pass> pass) {
  metrics_.connections.add(1);
  Http1Session session(std::move(socket), std::move(tls), limits_, metrics_, held_bodies_, io,
                       handler_, rules_);
  auto& sessions = sessions_[io.index()];
  sessions.insert(&session);
  if (draining_) {  // which does not wait for it
    session.serve_only_one();
    pass.reset();
    if (auto late = late_.enter()) pass.emplace(std::move(*late));
  }
  co_await session.run();
  sessions.erase(&session);
  metrics_.connections.add(-1);
  connections_.fetch_sub(1);
}

void HttpServer::Core::on_each_thread(void (Http1Session::*end)() noexcept) {
  for (std::size_t index = 0; index < threads_.size(); ++index) {
    asio::post(threads_[index].context(), [this, index, end, pass = posts_.enter()] {
      auto& sessions = sessions_[index];
      const std::vector<Http1Session*> now(sessions.begin(), sessions.end());
      for (Http1Session* session : now) {  // one may end at this, and be gone
        if (sessions.contains(session)) (session->*end)();
      }
    });
  }
}

void HttpServer::Core::drain() {
  if (draining_.exchange(true)) return;
  served_.close();
  asio::post(threads_[0].context(),
             [this, pass = posts_.enter(), first = noticing_.enter()]() mutable {
               notice_.expires_after(limits_.http_drain_notice);
               notice_.async_wait([pass = std::move(first)](error_code) {});
               grace_.expires_after(limits_.http_drain_grace);
               grace_.async_wait([this, pass = posts_.enter()](error_code stopped) {
                 if (!stopped) end_grace();
               });
             });
  on_each_thread(&Http1Session::drain);
}

void HttpServer::Core::end_grace() {
  if (grace_over_.exchange(true)) return;
  on_each_thread(&Http1Session::expire);
  asio::post(threads_[0].context(), [this, pass = posts_.enter()] {
    notice_.cancel();
    grace_.expires_after(kLastWords);
    grace_.async_wait([this, pass = posts_.enter()](error_code stopped) {
      if (!stopped) cut();
    });
  });
}

void HttpServer::Core::stop_accepting() {
  deaf_ = true;
  asio::post(threads_[0].context(), [this, pass = posts_.enter()] {
    error_code ignored;
    for (tcp::acceptor& acceptor : acceptors_) acceptor.close(ignored);
  });
  static_cast<void>(accepting_.wait_empty(clock_, kForever));
}

bool HttpServer::Core::wait_drained() {
  static_cast<void>(served_.wait_empty(clock_, kForever));
  static_cast<void>(noticing_.wait_empty(clock_, kForever));
  stop_accepting();
  on_each_thread(&Http1Session::drain);
  static_cast<void>(late_.wait_empty(clock_, clock_.now() + kLastWords));
  end_now();
  return !grace_over_;
}

void HttpServer::Core::end_now() {
  stop_accepting();
  cut();
  asio::post(threads_[0].context(), [this, pass = posts_.enter()] {
    grace_.cancel();
    notice_.cancel();
  });
  for (Gate* gate : {&served_, &late_, &noticing_, &posts_})
    static_cast<void>(gate->wait_empty(clock_, kForever));
}

HttpServer::HttpServer(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}

HttpServer::~HttpServer() {
  drain();
  core_->end_now();
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

void HttpServer::end_grace() { core_->end_grace(); }

bool HttpServer::wait_drained() { return core_->wait_drained(); }

}  // namespace sluice
