#include "gateway/replica_threads.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <future>

#include "inference.grpc.pb.h"

namespace sluice {

// Without credentials it is a channel whose calls fail at once, and a first call is what gives it
// the threads.
ReplicaThreads::ReplicaThreads() : channel_(grpc::CreateChannel("nobody", nullptr)) {
  grpc::ClientContext context;
  inference::CountTokensRequest request;
  inference::CountTokensResponse response;
  const auto ended = std::make_shared<std::promise<void>>();
  inference::LLM::Stub(channel_).async()->CountTokens(
      &context, &request, &response, [ended](const grpc::Status&) noexcept { ended->set_value(); });
  ended->get_future().wait();
}

ReplicaThreads::~ReplicaThreads() = default;

}  // namespace sluice
