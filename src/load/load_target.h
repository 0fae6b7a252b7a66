// The target that options ask for. Thread: as LoadTarget says.
#pragma once

#include <memory>

#include "load/load_options.h"
#include "load/load_stream.h"

namespace sluice {

[[nodiscard]] std::unique_ptr<LoadTarget> make_target(const TargetOptions& options);

}  // namespace sluice
