// gRPC's own log lines go to ours, at level debug: most tell of one bad connection, which anybody
// can make.
// Thread: once, before gRPC is used.
#pragma once

namespace sluice {

void route_grpc_log() noexcept;

}  // namespace sluice
