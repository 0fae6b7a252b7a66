// ReplicaChannels: the connections of one I/O thread to one replica for calls of their own. A call
// goes over the one with the fewest; when each has --calls-per-channel, another is opened, up to
// --max-channels, so that calls don't queue behind the peer's limit of streams unseen. A connection
// once opened stays. Thread: its I/O thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/gateway_limits.h"
#include "gateway/replica_endpoint.h"

namespace sluice {

class ReplicaChannels {
  struct Lane {
    std::shared_ptr<grpc::Channel> channel;
    std::uint32_t calls = 0;
  };

 public:
  // A place on a channel, for as long as one call lasts.
  class Place {
   public:
    explicit Place(std::shared_ptr<Lane> lane) noexcept : lane_(std::move(lane)) { ++lane_->calls; }
    ~Place() {
      if (lane_) --lane_->calls;
    }
    Place(Place&&) noexcept = default;
    Place& operator=(Place&&) = delete;

    [[nodiscard]] const std::shared_ptr<grpc::Channel>& channel() const noexcept {
      return lane_->channel;
    }

   private:
    std::shared_ptr<Lane> lane_;
  };

  ReplicaChannels(std::shared_ptr<const ReplicaEndpoint> endpoint, const GatewayLimits& limits)
      : endpoint_(std::move(endpoint)),
        calls_per_channel_(limits.calls_per_channel),
        max_channels_(endpoint_->is_local() ? 1 : limits.max_channels) {}

  [[nodiscard]] Place take();
  [[nodiscard]] bool idle() const noexcept;
  [[nodiscard]] const ReplicaEndpoint& endpoint() const noexcept { return *endpoint_; }

 private:
  std::shared_ptr<const ReplicaEndpoint> endpoint_;
  std::uint32_t calls_per_channel_;
  std::uint32_t max_channels_;
  std::vector<std::shared_ptr<Lane>> lanes_;
};

}  // namespace sluice
