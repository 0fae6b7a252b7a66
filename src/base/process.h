// The process as operators see it: its metrics, and the limits that it is given by the system.
// Thread: ProcessMetrics::refresh one at a time; the others any.
#pragma once

#include "base/metrics.h"

namespace sluice {

// The names that Prometheus' own client libraries use; what runs, as labels; lost lines of the log.
class ProcessMetrics {
 public:
  ProcessMetrics(Metrics& metrics, const Metrics::Labels& build);
  void refresh() noexcept;

 private:
  Gauge resident_bytes_;
  Gauge open_descriptors_;
  Gauge threads_;
  Counter cpu_seconds_;
  Counter lost_log_lines_;
};

// Processor time of this process, user and system.
[[nodiscard]] double own_cpu_seconds() noexcept;

// As many descriptors as the system allows; a warning that names the limit where it is low.
void raise_descriptor_limit() noexcept;

// A warning where the kernel's bound on connections that wait to be accepted is low.
void check_listen_backlog() noexcept;

}  // namespace sluice
