#include "access/caller_key.h"

#include <algorithm>

#include "base/concat.h"
#include "base/read_file.h"

namespace sluice {

Result<std::string> read_caller_key(const std::string& path, std::string_view flag) {
  constexpr std::size_t kMostBytes = 4096;
  auto text = read_file(path, flag, kMostBytes);
  if (!text) return text;
  const std::string key = text->substr(0, text->find_first_of("\r\n"));
  const bool printable =
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (key.empty() || !printable)
    return invalid(concat("the first line of ", path, " (", flag, ") is not a key"));
  return key;
}

}  // namespace sluice
