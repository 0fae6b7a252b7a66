// The connections of a gRPC target, and what gRPC's codes are called. Thread: any.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "load/load_options.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace sluice {

// A connection of its own, not made yet. `tight`: takes next to nothing that is not read.
[[nodiscard]] std::shared_ptr<grpc::Channel> make_load_channel(const TargetOptions& options,
                                                               bool tight);
// The error names the address.
[[nodiscard]] Result<void> wait_connected(grpc::Channel& channel, const TargetOptions& options);

// Key and deadline.
void prepare_call(const TargetOptions& options, grpc::ClientContext& context);

// "UNAVAILABLE", …; empty: OK.
[[nodiscard]] std::string status_name(int code);

}  // namespace sluice
