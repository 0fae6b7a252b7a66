// A look at a server's /metrics. Bounded by two seconds and 16 MiB. Thread: its io_context's.
#pragma once

#include <optional>
#include <string>

#include "gateway/asio.h"

namespace sluice {

// `address`: HOST:PORT, perhaps with http:// before it and a path behind; it outlives the task.
// Nothing: nobody answered with text.
[[nodiscard]] Task<std::optional<std::string>> scrape_metrics(const std::string& address);

}  // namespace sluice
