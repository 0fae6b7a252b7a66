#include "load/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "base/concat.h"

namespace sluice {
namespace {

constexpr std::uint64_t kOthers = 64;  // threads' own, libraries, files

}  // namespace

Result<void> need_descriptors(const LoadOptions& options) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const bool rest = options.target.protocol == LoadProtocol::kRest;
  const std::uint64_t connections = rest                    ? options.concurrency
                                    : options.target.attach ? options.target.channels
                                                            : options.target.channels * 2ULL;
  // An open loop takes as many as it needs, and says so when it was refused any.
  const std::uint64_t needed = kOthers + (rest && options.rate > 0 ? 0 : connections);
  if (limit.rlim_max < needed) {
    return fail(Code::kResourceExhausted,
                concat("needs ", needed,
                       " file descriptors, one for each connection, and the system "
                       "allows ",
                       limit.rlim_max, " (RLIMIT_NOFILE: ulimit -Hn)"));
  }
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  if (!(std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last)) return {};
  if (rest && options.rate <= 0 && last + 1 - first < connections) {
    return fail(Code::kResourceExhausted,
                concat("needs ", connections, " local ports, and the system has ", last + 1 - first,
                       " (net.ipv4.ip_local_port_range)"));
  }
  return {};
}

}  // namespace sluice
