// Makes the engine that the command line asks for.
// Thread: any; it blocks while a model is loaded.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "engine/engine.h"
#include "tools/serve_options.h"

namespace sluice {

// `clock` outlives the engine. Errors name the file or the flag at fault.
[[nodiscard]] Result<std::unique_ptr<Engine>> make_engine(const EngineOptions& options,
                                                          const Limits& limits, Clock& clock);

// The real one, whatever `options.kind` says.
[[nodiscard]] Result<std::unique_ptr<Engine>> make_real_engine(const EngineOptions& options,
                                                               const Limits& limits);

}  // namespace sluice
