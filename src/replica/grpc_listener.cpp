#include "replica/grpc_listener.h"

#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <limits>

#include "base/concat.h"
#include "base/listen_address.h"
#include "base/log.h"

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kPauseWithoutDescriptors{100};
constexpr std::chrono::milliseconds kLeastBetweenCounts{100};  // a count looks at each connection
constexpr std::chrono::milliseconds kMostBetweenCounts{2000};
constexpr std::chrono::minutes kBetweenTellings{1};
constexpr int kAcceptsAtOnce = 64;

// What gRPC sets on its own listeners; accepted sockets inherit it.
void set_options(int socket, const Limits& limits) noexcept {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto unacknowledged_ms = static_cast<unsigned>(limits.keepalive_timeout.count());
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
}

bool out_of_descriptors(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// Asked each time, for it may be changed while the process runs.
int first_spare_descriptor() noexcept {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kSpare = GrpcListener::kSpareDescriptors;
  return static_cast<int>(std::min<rlim_t>(limit.rlim_cur - std::min(kSpare, limit.rlim_cur / 4),
                                           std::numeric_limits<int>::max()));
}

ino_t inode(int descriptor) noexcept {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

Result<std::unique_ptr<GrpcListener>> GrpcListener::open(ListenAddress& address,
                                                         std::string_view flag,
                                                         const Limits& limits, Metrics& metrics) {
  auto sockets = listen_at(address, kBacklog, flag);
  if (!sockets) return tl::unexpected(std::move(sockets.error()));
  for (const int socket : *sockets) set_options(socket, limits);
  return std::unique_ptr<GrpcListener>(new GrpcListener(std::move(*sockets),
                                                        ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                                        limits.max_grpc_connections, metrics));
}

GrpcListener::GrpcListener(std::vector<int> sockets, int wake, std::uint32_t max_connections,
                           Metrics& metrics)
    : sockets_(std::move(sockets)),
      wake_(wake),
      max_connections_(max_connections),
      connections_(metrics.gauge("sluice_grpc_connections", "Connections of gRPC clients")),
      accepted_(metrics.counter("sluice_grpc_connections_total", "Connections accepted")),
      refused_limit_(metrics.counter("sluice_grpc_connections_refused_total",
                                     "Connections closed at once, or waiting for a descriptor",
                                     {{"why", "limit"}})),
      refused_descriptors_(metrics.counter(
          "sluice_grpc_connections_refused_total",
          "Connections closed at once, or waiting for a descriptor", {{"why", "descriptors"}})) {
  metrics.gauge("sluice_grpc_connections_limit", "The most that may be (--max-grpc-connections)")
      .set(max_connections);
}

GrpcListener::~GrpcListener() {
  stop();
  ::close(wake_);
}

void GrpcListener::serve(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server) {
  server_ = std::move(server);
  thread_ = std::thread([this]() noexcept { run(); });
}

void GrpcListener::stop() noexcept {
  if (stopping_.exchange(true)) return;
  ::eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
  for (const int socket : sockets_) ::close(socket);
}

void GrpcListener::run() noexcept {
  std::vector<pollfd> polled;
  for (const int socket : sockets_) polled.push_back({socket, POLLIN, 0});
  polled.push_back({wake_, POLLIN, 0});
  while (!stopping_) {
    const int patience = open_.empty() ? -1 : static_cast<int>(kMostBetweenCounts.count());
    static_cast<void>(::poll(polled.data(), polled.size(), patience));
    if (std::chrono::steady_clock::now() - counted_at_ >= kMostBetweenCounts) count_open();
    for (const pollfd& one : polled) {
      if (one.fd != wake_ && (one.revents & POLLIN) != 0) accept_some(one.fd);
    }
  }
}

void GrpcListener::accept_some(int socket) noexcept {
  for (int i = 0; i < kAcceptsAtOnce && !stopping_; ++i) {
    const int connection = ::accept4(socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection < 0) {
      if (!out_of_descriptors(errno)) return;  // none left, or gone before it was accepted
      refused_descriptors_.add();
      tell_shortage(std::strerror(errno));
      if (pause(kPauseWithoutDescriptors)) return;
      continue;
    }
    try {
      take(socket, connection);
    } catch (const std::exception&) {  // out of memory
      open_.erase(connection);
      ::close(connection);
    }
  }
}

void GrpcListener::take(int socket, int connection) {
  if (connection >= first_spare_descriptor()) {
    refused_descriptors_.add();
    tell_shortage("the process has few file descriptors left");
    ::close(connection);
    return;
  }
  open_.erase(connection);  // its last holder is gone
  if (is_full()) {
    refused_limit_.add();
    ::close(connection);
    return;
  }
  open_.emplace(connection, inode(connection));
  accepted_.add();
  connections_.set(static_cast<double>(open_.size()));
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = socket;
  parameters.fd = connection;
  server_->HandleNewConnection(&parameters);
}

bool GrpcListener::is_full() noexcept {
  if (open_.size() < max_connections_) return false;
  if (std::chrono::steady_clock::now() - counted_at_ >= kLeastBetweenCounts) count_open();
  return open_.size() >= max_connections_;
}

void GrpcListener::count_open() noexcept {
  std::erase_if(open_, [](const auto& one) { return inode(one.first) != one.second; });
  counted_at_ = std::chrono::steady_clock::now();
  connections_.set(static_cast<double>(open_.size()));
}

void GrpcListener::tell_shortage(const char* why) noexcept try {
  const Time now = std::chrono::steady_clock::now();
  if (told_at_ != Time{} && now - told_at_ < kBetweenTellings) return;
  told_at_ = now;
  log_error("grpc", concat("can't accept connections: ", why,
                           " (RLIMIT_NOFILE, ulimit -Hn); goes on as soon as others close"));
} catch (const std::exception&) {
  // Out of memory, too: it is counted.
}

bool GrpcListener::pause(std::chrono::milliseconds time) noexcept {
  pollfd wake{wake_, POLLIN, 0};
  static_cast<void>(::poll(&wake, 1, static_cast<int>(time.count())));
  return stopping_;
}

}  // namespace sluice
