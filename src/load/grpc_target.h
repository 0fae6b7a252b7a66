// GrpcTarget: inference.LLM/Generate, a call for each request, over a number of connections.
// Streams that read slowly have connections of their own, with a window so small that not reading
// reaches the server (docs/back_pressure.md). Bounded by its streams. Thread: as LoadTarget says.
#pragma once

#include <memory>

#include "base/error.h"
#include "load/load_options.h"
#include "load/load_stream.h"

namespace sluice {

[[nodiscard]] std::unique_ptr<LoadTarget> make_grpc_target(const TargetOptions& options);

}  // namespace sluice
