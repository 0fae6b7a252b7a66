// GrpcListener: accepts the connections of a gRPC server and hands them over. gRPC's own listener
// never accepts again once the process has run out of descriptors (1.51): one flood would be the
// server's end. Bounded by --max-grpc-connections, and by the descriptors of the process, of which
// kSpareDescriptors are left to files, metrics and the server's own connections: beyond either a
// connection is closed at once, and counted.
// Thread: its own accepts; serve and stop one at a time.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/metrics.h"
#include "contract/limits.h"

namespace grpc::experimental {
class ExternalConnectionAcceptor;
}

namespace sluice {

struct ListenAddress;

class GrpcListener {
 public:
  static constexpr int kSpareDescriptors = 64;
  static constexpr int kBacklog = 4096;

  // Listens, on `address`, whose port 0 becomes the one that it has; who connects waits for
  // serve(). Errors name `flag`.
  [[nodiscard]] static Result<std::unique_ptr<GrpcListener>> open(ListenAddress& address,
                                                                  std::string_view flag,
                                                                  const Limits& limits,
                                                                  Metrics& metrics);
  ~GrpcListener();
  GrpcListener(const GrpcListener&) = delete;
  GrpcListener& operator=(const GrpcListener&) = delete;

  // `server` has begun to serve, and ends after stop().
  void serve(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server);
  // Nobody can connect any more. What is open stays so.
  void stop() noexcept;

 private:
  using Time = std::chrono::steady_clock::time_point;

  GrpcListener(std::vector<int> sockets, int wake, std::uint32_t max_connections, Metrics& metrics);
  void run() noexcept;
  void accept_some(int socket) noexcept;
  void take(int socket, int connection);
  [[nodiscard]] bool is_full() noexcept;
  void count_open() noexcept;
  void tell_shortage(const char* why) noexcept;
  // True when it is over.
  [[nodiscard]] bool pause(std::chrono::milliseconds time) noexcept;

  const std::vector<int> sockets_;
  const int wake_;  // readable when it is over
  const std::uint32_t max_connections_;
  Gauge connections_;
  Counter accepted_;
  Counter refused_limit_;
  Counter refused_descriptors_;

  std::atomic<bool> stopping_ = false;
  std::thread thread_;
  // Of the thread.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server_;
  // gRPC tells nobody when a connection ends: one is over when its descriptor is no longer of the
  // same inode.
  std::unordered_map<int, ino_t> open_;
  Time counted_at_{};
  Time told_at_{};
};

}  // namespace sluice
