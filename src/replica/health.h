// HealthService: grpc.health.v1, for the server as a whole ("") and each service by name; all share
// one state, NOT_SERVING at first. gRPC's own default service begins as SERVING and has no
// descriptor, so that it can't be seen by reflection.
// Open without a key.
// Bounded: one message in flight for each Watch; Watches by --max-watches.
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace grpc {
class Service;
}

namespace sluice {

struct ReplicaMetrics;

class HealthService {
 public:
  HealthService(std::vector<std::string> services, std::uint32_t max_watches,
                ReplicaMetrics& metrics);
  // After the server's end.
  ~HealthService();
  HealthService(const HealthService&) = delete;
  HealthService& operator=(const HealthService&) = delete;

  [[nodiscard]] grpc::Service& service() noexcept;

  void set_serving(bool serving) noexcept;
  [[nodiscard]] bool serving() const noexcept;

  // NOT_SERVING from now on, whatever set_serving says.
  void retire() noexcept;

  // Ends every Watch, also those to come, with UNAVAILABLE: a server that is to stop would wait for
  // them.
  void end_watches() noexcept;

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace sluice
