// The target of OpenAI's REST API: /v1/chat/completions, streamed, one connection for each stream,
// kept alive. Bounded by its streams. Thread: as LoadTarget says; connections live on threads of
// the target's own.
#pragma once

#include <memory>

#include "load/load_options.h"
#include "load/load_stream.h"

namespace sluice {

[[nodiscard]] std::unique_ptr<LoadTarget> make_rest_target(const TargetOptions& options);

// The body of a request. Thread: any.
[[nodiscard]] std::string rest_body(const GenerationRequest& request);

}  // namespace sluice
