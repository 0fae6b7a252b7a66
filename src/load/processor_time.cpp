#include "load/processor_time.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/concat.h"

namespace sluice {

std::optional<double> cpu_seconds_of(std::int32_t pid) {
  std::ifstream file(concat("/proc/", pid, "/stat"));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  // The name, in parentheses, may hold anything; utime and stime are fields 14 and 15.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0;
  double system = 0;
  if (!(fields >> user >> system)) return std::nullopt;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::optional<double> cpu_seconds_in(std::string_view metrics) {
  constexpr std::string_view kName = "\nprocess_cpu_seconds_total ";
  std::size_t at = metrics.find(kName);
  if (at == std::string_view::npos) return std::nullopt;
  at += kName.size();
  double seconds = 0;
  const char* const end = metrics.data() + metrics.size();
  if (std::from_chars(metrics.data() + at, end, seconds).ec != std::errc{}) return std::nullopt;
  return seconds;
}

unsigned own_processors() noexcept {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&allowed)));
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

std::uint64_t own_peak_bytes() noexcept {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace sluice
