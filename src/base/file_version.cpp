#include "base/file_version.h"

#include <sys/stat.h>

namespace sluice {

FileVersion file_version(const std::string& path) noexcept {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return {};
  return {file.st_ino, file.st_size,
          file.st_mtim.tv_sec * std::int64_t{1'000'000'000} + file.st_mtim.tv_nsec};
}

}  // namespace sluice
