#include "base/check.h"

#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/log.h"

namespace sluice {

void check_failed(const char* condition, const char* reason, const char* file, int line) noexcept {
  constexpr std::chrono::milliseconds kPatience{200};  // with a stderr that nobody reads
  flush_log(kPatience);
  pollfd target{STDERR_FILENO, POLLOUT, 0};
  const bool writable = ::poll(&target, 1, static_cast<int>(kPatience.count())) > 0;
  if (writable) std::fprintf(stderr, "%s:%d: CHECK(%s): %s\n", file, line, condition, reason);
  std::abort();
}

}  // namespace sluice
