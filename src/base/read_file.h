// read_file: all of a file that somebody named, within a bound: a folder, a device without an end
// and a file that is not meant give an error, never more than the bound in memory.
// Thread: any; blocks as the file does (a pipe, until its writer is done).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice {

// Bound of a file with certificates or a key in PEM.
inline constexpr std::size_t kMostPemBytes = 1 << 20;

// `called`: what the file is to the caller, mostly its flag. Errors name the file, `called` and
// why: kNotFound (it can't be read), kInvalidArgument (it has more than `most` bytes).
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::string_view called,
                                            std::size_t most);

}  // namespace sluice
