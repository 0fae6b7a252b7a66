// What gRPC and libprotobuf log goes to our log, at level debug: most of it tells of one bad
// connection or message, which anybody can make. Of libprotobuf's lines only their place in its
// source is kept, for they may hold a part of what it parsed.
// Thread: once, before gRPC is used.
#pragma once

namespace sluice {

void route_library_logs() noexcept;

}  // namespace sluice
