#include "gateway/replica_channels.h"

#include <grpcpp/channel.h>

#include <algorithm>

namespace sluice {

ReplicaChannels::Place ReplicaChannels::take() {
  const auto least =
      std::min_element(lanes_.begin(), lanes_.end(),
                       [](const auto& a, const auto& b) { return a->calls < b->calls; });
  const bool full = least == lanes_.end() || (*least)->calls >= calls_per_channel_;
  if (!full || (least != lanes_.end() && lanes_.size() >= max_channels_)) {
    // A connection that failed would refuse calls until its pause is over. The replica is said to
    // be up again: a new one finds out at once.
    if ((*least)->channel->GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE)
      (*least)->channel = endpoint_->open(ChannelUse::kCalls);
    return Place(*least);
  }
  lanes_.push_back(std::make_shared<Lane>(Lane{endpoint_->open(ChannelUse::kCalls)}));
  return Place(lanes_.back());
}

bool ReplicaChannels::idle() const noexcept {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const auto& lane) { return lane->calls == 0; });
}

}  // namespace sluice
