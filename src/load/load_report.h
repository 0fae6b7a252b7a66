// LoadReport: what came out of a run, as numbers, and as the text, JSON and HTML that show them.
// None of them holds a prompt, an answer or a key. Thread: any (values).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "load/load_options.h"
#include "load/load_run.h"

namespace sluice {

struct LoadReport {
  std::string target;  // as it was given
  std::string load;    // "closed loop, 8 users"
  std::string began;   // RFC 3339, UTC
  std::uint64_t seed = 0;
  bool has_targets = false;  // of goodput
  double target_ttft_ms = 0;
  double target_itl_ms = 0;
  LoadResult result;
  unsigned processors = 1;  // that the tool may use
  std::vector<std::string> warnings;

  [[nodiscard]] double per_second(double count) const noexcept;
  // Of the requests that should have been answered: all but those cancelled as planned.
  [[nodiscard]] std::uint64_t asked() const noexcept;
  // Share of a processor.
  [[nodiscard]] double own_cpu() const noexcept;
};

// `target` and `began` as above.
[[nodiscard]] LoadReport make_report(const LoadOptions& options, std::string target,
                                     std::string began, LoadResult result);

// Where the tool, and not the server, may be what was measured. Nothing: it was not.
[[nodiscard]] std::vector<std::string> find_ceilings(const LoadOptions& options,
                                                     const LoadResult& result, unsigned processors);

struct NamedLatency {
  std::string_view key;   // in JSON
  std::string_view name;  // for people
  const LatencyHistogram* latency;
};
[[nodiscard]] std::vector<NamedLatency> latencies_of(const LoadCounts& counts);

struct Percentile {
  std::string_view key;  // "p99.9"
  double percent;
};
inline constexpr Percentile kPercentiles[] = {{"p50", 50}, {"p90", 90},     {"p95", 95},
                                              {"p99", 99}, {"p99.9", 99.9}, {"max", 100}};

[[nodiscard]] std::string report_text(const LoadReport& report);
[[nodiscard]] std::string report_json(const LoadReport& report);
// One file with everything in it: no script, no font, no picture from elsewhere.
[[nodiscard]] std::string report_html(const LoadReport& report);

}  // namespace sluice
