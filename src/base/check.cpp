#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace sluice {

void check_failed(const char* condition, const char* reason, const char* file, int line) noexcept {
  std::fprintf(stderr, "%s:%d: CHECK(%s): %s\n", file, line, condition, reason);
  std::abort();
}

}  // namespace sluice
