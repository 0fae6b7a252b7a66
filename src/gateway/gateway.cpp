#include "gateway/gateway.h"

#include <boost/asio/post.hpp>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "access/caller_key.h"
#include "access/keys.h"
#include "base/clock.h"
#include "base/concat.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/process.h"
#include "gateway/access_log.h"
#include "gateway/cors.h"
#include "gateway/endpoints.h"
#include "gateway/gateway_metrics.h"
#include "gateway/io_threads.h"
#include "gateway/listener.h"
#include "gateway/rate_limits.h"
#include "gateway/replica_links.h"
#include "gateway/replica_pool.h"
#include "gateway/router.h"

namespace sluice {
namespace {

constexpr std::chrono::seconds kUpkeepInterval{1};

// Takes up changes of the key file, and brings the figures of the process up to date.
class Upkeep {
 public:
  Upkeep(KeyRing& keys, ProcessMetrics& process, Clock& clock)
      : keys_(keys), process_(process), clock_(clock), thread_([this]() noexcept { run(); }) {}
  ~Upkeep() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Upkeep(const Upkeep&) = delete;
  Upkeep& operator=(const Upkeep&) = delete;

 private:
  void run() noexcept {
    for (bool odd = true;; odd = !odd) {
      const TimePoint next = clock_.now() + kUpkeepInterval;
      {
        const MutexLock lock(mutex_);
        while (!stopping_ && clock_.now() < next) clock_.wait_until(changed_, mutex_, next);
        if (stopping_) return;
      }
      keys_.refresh();
      if (odd) process_.refresh();  // counting open descriptors takes as long as there are many
    }
  }

  KeyRing& keys_;
  ProcessMetrics& process_;
  Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

// Everything, in the order in which it is made; what is below may use what is above.
class Gateway::Parts {
 public:
  Parts(GatewayOptions given, std::unique_ptr<KeyRing> given_keys)
      : options(std::move(given)),
        keys(std::move(given_keys)),
        cors(options.cors_origins, keys->required()) {}
  ~Parts() {
    server.reset();
    drop_links();
  }

  [[nodiscard]] Result<void> connect(Local local);
  [[nodiscard]] Result<void> listen();
  void make_links();
  void drop_links() noexcept;

  const GatewayOptions options;
  const std::unique_ptr<KeyRing> keys;
  const Cors cors;
  std::string metrics_address;

  SystemClock clock;
  Metrics metrics;
  ProcessMetrics process{metrics, {{"version", SLUICE_VERSION}}};
  GatewayMetrics gateway_metrics{metrics, options.limits};
  RateLimits rates{clock};
  std::optional<AccessLog> access_log;
  std::unique_ptr<ReplicaPool> pool;
  IoThreads io{0};
  std::vector<std::unique_ptr<ReplicaLinks>> links;  // of each I/O thread
  std::optional<Endpoints> endpoints;
  std::optional<Router> router;
  std::unique_ptr<HttpServer> server;
  Upkeep upkeep{*keys, process, clock};
};

Result<void> Gateway::Parts::connect(Local local) {
  auto log = AccessLog::open(options.access_log, options.access_log_bytes, metrics);
  if (!log) return tl::unexpected(std::move(log.error()));
  access_log.emplace(std::move(*log));
  Result<std::string> key;
  if (!options.replica_key.empty()) key = read_caller_key(options.replica_key, "--replica-key");
  if (!key) return tl::unexpected(std::move(key.error()));
  PoolOptions pool_options;
  pool_options.replicas = options.replicas;
  pool_options.api_key = std::move(*key);
  pool_options.local = std::move(local.channel);
  pool_options.local_key = std::move(local.key);
  pool_options.tls = options.replica_tls;
  pool_options.policy = options.policy;
  auto started = ReplicaPool::start(pool_options, options.limits, metrics);
  if (!started) return tl::unexpected(std::move(started.error()));
  pool = std::move(*started);
  make_links();
  return {};
}

void Gateway::Parts::make_links() {
  links.resize(io.size());
  for (std::size_t i = 0; i < io.size(); ++i)
    links[i] = std::make_unique<ReplicaLinks>(*pool, io[i].context(), options.limits);
}

// Each on its own thread, where its streams live.
void Gateway::Parts::drop_links() noexcept {
  for (std::size_t i = 0; i < links.size(); ++i) {
    auto dropped = std::make_shared<std::promise<void>>();
    asio::post(io[i].context(), [this, i, dropped] {
      links[i].reset();
      dropped->set_value();
    });
    dropped->get_future().wait();
  }
}

Result<void> Gateway::Parts::listen() {
  endpoints.emplace(*pool, rates, metrics, options.limits);
  router.emplace(
      Router::Surroundings{.completion = {*pool, rates, gateway_metrics, options.limits, clock},
                           .endpoints = *endpoints,
                           .keys = *keys,
                           .cors = cors,
                           .trusted_clients = options.trusted_clients,
                           .access_log = *access_log,
                           .links_of = [this](const IoThread& thread) -> ReplicaLinks& {
                             return *links[thread.index()];
                           }});
  HttpServerOptions server_options;
  server_options.listen = options.listen;
  server_options.tls = options.tls;
  server_options.rules = {
      .wants_body = [this](const HttpRequest& request) { return router->wants_body(request); },
      .add_headers = [this](const HttpHeaders& request,
                            HttpHeaders& response) { cors.add_headers(request, response); }};
  auto started =
      HttpServer::start(server_options, options.limits, metrics, io,
                        [this](HttpRequest& request, Responder& responder, IoThread& thread) {
                          return router->answer(request, responder, thread);
                        });
  if (!started) return tl::unexpected(std::move(started.error()));
  server = std::move(*started);
  return {};
}

Gateway::Gateway(std::unique_ptr<Parts> parts) noexcept : parts_(std::move(parts)) {}
Gateway::~Gateway() = default;

Result<std::unique_ptr<Gateway>> Gateway::start(GatewayOptions options, Local local) {
  auto keys = KeyRing::load(options.api_keys);
  if (!keys) return tl::unexpected(std::move(keys.error()));
  auto parts = std::make_unique<Parts>(std::move(options), std::move(*keys));
  auto metrics_address = serve_metrics(parts->metrics, parts->options.metrics_listen);
  if (!metrics_address) return tl::unexpected(std::move(metrics_address.error()));
  parts->metrics_address = std::move(*metrics_address);
  if (auto connected = parts->connect(std::move(local)); !connected)
    return tl::unexpected(std::move(connected.error()));
  if (auto listening = parts->listen(); !listening)
    return tl::unexpected(std::move(listening.error()));
  return std::unique_ptr<Gateway>(new Gateway(std::move(parts)));
}

std::string Gateway::address() const { return parts_->server->address(); }
std::string Gateway::metrics_address() const { return parts_->metrics_address; }

bool Gateway::wait_ready(std::chrono::milliseconds most) noexcept {
  return parts_->pool->wait_ready(parts_->clock.now() + most);
}

void Gateway::begin_drain() noexcept {
  if (!parts_->router->drain()) return;
  parts_->server->drain();
  log_info("gateway",
           concat("draining: new requests get 503, running answers may go on for ",
                  parts_->options.limits.http_drain_grace.count(), " ms (--http-drain-grace-ms)"));
}

void Gateway::end_grace() noexcept { parts_->server->end_grace(); }
bool Gateway::wait_drained() noexcept { return parts_->server->wait_drained(); }

}  // namespace sluice
