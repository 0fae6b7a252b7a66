// The key with which this process calls somebody else's server, kept in a file. Bounded by 4 KiB.
// Thread: any.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice {

// The file's first line. What can't stand in a gRPC header is refused, for it would abort the call
// far from here. Errors name `flag` and the file.
[[nodiscard]] Result<std::string> read_caller_key(const std::string& path, std::string_view flag);

}  // namespace sluice
