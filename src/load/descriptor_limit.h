// What this process needs of its system for a load: file descriptors and, for REST, local ports.
// Thread: main, before any other.
#pragma once

#include "base/error.h"
#include "load/load_options.h"

namespace sluice {

// Raises the limit as far as the system lets it. The error says what is too low, and how much is
// needed.
[[nodiscard]] Result<void> need_descriptors(const LoadOptions& options);

}  // namespace sluice
