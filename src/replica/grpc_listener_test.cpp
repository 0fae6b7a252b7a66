#include "replica/grpc_listener.h"

#include <gmock/gmock.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/listen_address.h"
#include "base/mutex.h"

namespace sluice {
namespace {

using testing::HasSubstr;

// In the server's place: keeps what it is given open.
class KeptConnections final : public grpc::experimental::ExternalConnectionAcceptor {
 public:
  void HandleNewConnection(NewConnectionParameters* given) override {
    const MutexLock lock(mutex_);
    open_.push_back(given->fd);
    changed_.notify_all();
  }
  ~KeptConnections() override { close_all(); }

  void wait_for(std::size_t count) {
    const MutexLock lock(mutex_);
    while (open_.size() < count) changed_.wait(mutex_);
  }
  [[nodiscard]] std::size_t count() {
    const MutexLock lock(mutex_);
    return open_.size();
  }
  void close_all() {
    const MutexLock lock(mutex_);
    for (const int fd : open_) ::close(fd);
    open_.clear();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<int> open_ GUARDED_BY(mutex_);
};

class GrpcListenerTest : public testing::Test {
 protected:
  void SetUp() override { ::getrlimit(RLIMIT_NOFILE, &limit_); }
  void TearDown() override {
    listener_.reset();
    ::setrlimit(RLIMIT_NOFILE, &limit_);
    for (const int fd : clients_) ::close(fd);
  }

  void listen(std::uint32_t max_connections) {
    Limits limits;
    limits.max_grpc_connections = max_connections;
    auto listener = GrpcListener::open(address_, "--listen", limits, metrics_);
    ASSERT_TRUE(listener) << listener.error().message;
    listener_ = std::move(*listener);
    auto kept = std::make_unique<KeptConnections>();
    kept_ = kept.get();
    listener_->serve(std::move(kept));
  }

  int connect() {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(static_cast<std::uint16_t>(address_.port));
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    clients_.push_back(fd);
    return fd;
  }
  // Waits until the server closes, or not (MSG_DONTWAIT).
  static bool is_closed(int client, int flags = 0) {
    char byte = 0;
    return ::recv(client, &byte, 1, flags) == 0 || errno == ECONNRESET;
  }

  rlimit limit_{};
  ListenAddress address_{"127.0.0.1", 0};
  Metrics metrics_;
  std::unique_ptr<GrpcListener> listener_;
  KeptConnections* kept_ = nullptr;
  std::vector<int> clients_;
};

TEST_F(GrpcListenerTest, PastTheLimitAConnectionIsClosedUntilAnotherEnds) {
  listen(2);
  connect();
  connect();
  kept_->wait_for(2);
  EXPECT_TRUE(is_closed(connect()));
  EXPECT_THAT(metrics_.text(),
              HasSubstr("sluice_grpc_connections_refused_total{why=\"limit\"} 1\n"));
  kept_->close_all();
  // What ended is noticed within a moment: until then a client may be refused.
  while (kept_->count() == 0) {
    const int client = connect();
    while (kept_->count() == 0 && !is_closed(client, MSG_DONTWAIT)) std::this_thread::yield();
  }
}

TEST_F(GrpcListenerTest, WithFewDescriptorsLeftConnectionsAreRefusedAndLaterTakenAgain) {
  listen(1000);
  connect();
  kept_->wait_for(1);
  // Enough for both ends of one more connection.
  const rlimit few{static_cast<rlim_t>(clients_.back() + 4), limit_.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_TRUE(is_closed(connect()));
  EXPECT_THAT(metrics_.text(),
              HasSubstr("sluice_grpc_connections_refused_total{why=\"descriptors\"} 1\n"));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit_), 0);
  connect();
  kept_->wait_for(2);
}

// gRPC's own listener is dead after this.
TEST_F(GrpcListenerTest, WithoutAnyDescriptorConnectionsWaitAndAreTakenLater) {
  listen(1000);
  const int client = connect();
  kept_->wait_for(1);
  const int waiting = ::socket(AF_INET, SOCK_STREAM, 0);
  clients_.push_back(waiting);
  const rlimit none{3, limit_.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_in name{};
  socklen_t size = sizeof name;
  ::getpeername(client, reinterpret_cast<sockaddr*>(&name), &size);
  ASSERT_EQ(::connect(waiting, reinterpret_cast<sockaddr*>(&name), size), 0);
  const auto refused = [this] {
    return metrics_.text().find("refused_total{why=\"descriptors\"} 0\n") == std::string::npos;
  };
  while (!refused()) std::this_thread::yield();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit_), 0);
  kept_->wait_for(2);
}

}  // namespace
}  // namespace sluice
