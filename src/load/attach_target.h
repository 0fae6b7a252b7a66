// AttachTarget: inference.Replica/Attach, the step stream that gateways use: one call a connection,
// one message down for each decode step, whatever the number of requests. Slow readers grant credit
// as slowly as they read. Bounded by its streams. A call that breaks fails its requests and those
// that come after. Thread: as LoadTarget says.
#pragma once

#include <memory>

#include "load/load_options.h"
#include "load/load_stream.h"

namespace sluice {

[[nodiscard]] std::unique_ptr<LoadTarget> make_attach_target(const TargetOptions& options);

}  // namespace sluice
