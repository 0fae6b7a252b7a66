// ReplicaThreads: keeps gRPC's callback threads for as long as it lives. gRPC 1.51 ends them with
// the last channel that used them, and aborts if one of them is what lets go of that channel (its
// callback held the last reference). So the pool has one that nothing is ever sent on, made first
// and destroyed last, by the thread that ends the pool. Thread: any one.
#pragma once

#include <memory>

namespace grpc {
class Channel;
}

namespace sluice {

class ReplicaThreads {
 public:
  ReplicaThreads();
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace sluice
