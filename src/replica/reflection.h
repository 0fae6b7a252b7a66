// ReflectionService: grpc.reflection.v1 and v1alpha over the descriptors in this binary, for
// grpcurl and its like. One implementation for both: Debian's gRPC has v1alpha alone.
// Bounded: one request in flight for each call; it answers from memory.
// Thread: gRPC's.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace grpc {
class Service;
}

namespace sluice {

class ReflectionService {
 public:
  // `services`: what `list` shows, by full name.
  explicit ReflectionService(std::vector<std::string> services);
  ~ReflectionService();
  ReflectionService(const ReflectionService&) = delete;
  ReflectionService& operator=(const ReflectionService&) = delete;

  [[nodiscard]] grpc::Service& v1() noexcept;
  [[nodiscard]] grpc::Service& v1alpha() noexcept;

 private:
  class V1;
  class V1Alpha;
  std::unique_ptr<V1> v1_;
  std::unique_ptr<V1Alpha> v1alpha_;
};

}  // namespace sluice
