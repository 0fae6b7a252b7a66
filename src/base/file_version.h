// FileVersion: whether a file changed since it was last looked at, as far as the file system tells.
// For files that are read again while Sluice runs: keys and certificates.
// Thread: any (values).
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

struct FileVersion {
  std::uint64_t inode = 0;
  std::int64_t bytes = -1;  // -1: there is no such file
  std::int64_t modified_ns = 0;
  bool operator==(const FileVersion&) const = default;
};

[[nodiscard]] FileVersion file_version(const std::string& path) noexcept;

}  // namespace sluice
