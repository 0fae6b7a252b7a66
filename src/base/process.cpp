#include "base/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "base/concat.h"
#include "base/log.h"

namespace sluice {
namespace {

constexpr rlim_t kFewDescriptors = 16'384;
constexpr int kShortBacklog = 4096;

double entries_of(const char* folder) noexcept {
  std::error_code error;
  double count = 0;
  for (auto it = std::filesystem::directory_iterator(folder, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    ++count;
  }
  return count;
}

}  // namespace

ProcessMetrics::ProcessMetrics(Metrics& metrics, const Metrics::Labels& build)
    : resident_bytes_(metrics.gauge("process_resident_memory_bytes", "Resident memory")),
      open_descriptors_(metrics.gauge("process_open_fds", "Open file descriptors")),
      threads_(metrics.gauge("process_threads", "Threads")),
      cpu_seconds_(metrics.counter("process_cpu_seconds_total", "Processor time, user and system")),
      lost_log_lines_(metrics.counter("sluice_log_lost_total", "Lines that stderr did not take")) {
  metrics.gauge("sluice_build_info", "1; the labels say what runs", build).set(1);
  metrics.gauge("process_start_time_seconds", "When the process started, in seconds since 1970")
      .set(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
               .count());
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  metrics.gauge("process_max_fds", "Most file descriptors that may be open")
      .set(static_cast<double>(limit.rlim_cur));
  refresh();
}

void ProcessMetrics::refresh() noexcept try {
  std::int64_t pages = 0;
  std::int64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident_pages;
  resident_bytes_.set(static_cast<double>(resident_pages * sysconf(_SC_PAGESIZE)));
  open_descriptors_.set(entries_of("/proc/self/fd"));
  threads_.set(entries_of("/proc/self/task"));
  lost_log_lines_.add(static_cast<double>(lost_log_lines()) - lost_log_lines_.value());
  cpu_seconds_.add(std::max(0.0, own_cpu_seconds() - cpu_seconds_.value()));
} catch (...) {
  // Out of memory: the figures stay as they were.
}

double own_cpu_seconds() noexcept {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < kFewDescriptors) {
    log_warning("process",
                concat("at most ", limit.rlim_max,
                       " file descriptors, one for each connection (RLIMIT_NOFILE, ulimit -Hn)"));
  }
}

void check_listen_backlog() noexcept try {
  int backlog = kShortBacklog;
  std::ifstream("/proc/sys/net/core/somaxconn") >> backlog;
  if (backlog < kShortBacklog) {
    log_warning("process", concat("at most ", backlog,
                                  " connections may wait to be accepted (net.core.somaxconn)"));
  }
} catch (...) {
  // Out of memory: only a hint is lost.
}

}  // namespace sluice
