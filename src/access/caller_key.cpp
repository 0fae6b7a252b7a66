#include "access/caller_key.h"

#include <algorithm>
#include <fstream>

#include "base/concat.h"

namespace sluice {

Result<std::string> read_caller_key(const std::string& path, std::string_view flag) {
  constexpr std::size_t kMostBytes = 4096;
  std::ifstream file(path, std::ios::binary);
  std::string key(kMostBytes, '\0');
  file.read(key.data(), static_cast<std::streamsize>(key.size()));
  if (!file.is_open() || file.bad())
    return invalid(concat(flag, " ", path, ": the file can't be read"));
  key.resize(static_cast<std::size_t>(file.gcount()));
  key.resize(std::min(key.find_first_of("\r\n"), key.size()));
  const bool printable =
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (key.empty() || key.size() == kMostBytes || !printable)
    return invalid(concat(flag, " ", path, ": its first line is not a key"));
  return key;
}

}  // namespace sluice
