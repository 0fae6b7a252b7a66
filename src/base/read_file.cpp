#include "base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/concat.h"
#include "base/descriptor.h"

namespace sluice {
namespace {

constexpr std::size_t kChunk = 64 << 10;

// Of a regular file; 0 where nobody knows.
std::size_t size_of(int fd) noexcept {
  struct stat file {};
  return ::fstat(fd, &file) == 0 && file.st_size > 0 ? static_cast<std::size_t>(file.st_size) : 0;
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::string_view called, std::size_t most) {
  const auto unreadable = [&] {
    return fail(Code::kNotFound, concat("can't read ", path, " (", called,
                                        "): ", std::generic_category().message(errno)));
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) return unreadable();
  std::string bytes;
  std::size_t size = 0;
  bytes.resize(std::min(size_of(file.get()), most) + 1);  // one more, to see the end
  for (;;) {
    if (size == bytes.size()) bytes.resize(std::min(size + kChunk, most + 1));
    const ssize_t got = ::read(file.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable();
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > most)
      return invalid(
          concat(path, " (", called, ") has more than the ", most, " bytes that are allowed"));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace sluice
