#include "load/load_report.h"

#include <algorithm>

#include "base/concat.h"
#include "load/number_text.h"
#include "load/processor_time.h"

namespace sluice {
namespace {

constexpr double kBusy = 0.8;       // of the processors, from which on the tool queues
constexpr double kLateShare = 0.1;  // of the median TTFT
constexpr double kLateMicroseconds = 2000;

std::string describe_load(const LoadOptions& options) {
  std::string text;
  if (options.rate > 0) {
    text = concat("open loop, ", short_text(options.rate), " requests/s, ",
                  options.arrivals == ArrivalProcess::kPoisson ? "Poisson" : "constant");
  } else {
    text = concat("closed loop, ", options.concurrency, " users");
  }
  if (options.target.protocol == LoadProtocol::kRest) return text + ", REST";
  return concat(text, ", gRPC, ", options.target.channels,
                options.target.channels == 1 ? " channel" : " channels",
                options.target.attach ? ", step stream" : "");
}

}  // namespace

double LoadReport::per_second(double count) const noexcept {
  return result.window_seconds > 0 ? count / result.window_seconds : 0;
}

std::uint64_t LoadReport::asked() const noexcept {
  const LoadCounts& counts = result.counts;
  return counts.succeeded + counts.failed + counts.unfinished + counts.not_started;
}

double LoadReport::own_cpu() const noexcept {
  return result.window_seconds > 0 ? result.own_cpu_seconds / result.window_seconds : 0;
}

std::vector<std::string> find_ceilings(const LoadOptions& options, const LoadResult& result,
                                       unsigned processors) {
  std::vector<std::string> found;
  const double busy =
      result.window_seconds > 0 ? result.own_cpu_seconds / result.window_seconds : 0;
  if (busy > kBusy * processors) {
    found.push_back(concat("the tool itself used ", fixed_text(busy, 2), " of its ", processors,
                           " processors: what it measured is its own ceiling, too. Give it more "
                           "processors, or load less from each machine."));
  }
  // What is late because of the tool's bound is told below, and was counted.
  const double lag = result.lag.percentile_us(99);
  const double late = result.held_arrivals > 0 || options.rate <= 0
                          ? lag
                          : std::max(lag, result.counts.lateness.percentile_us(99));
  const bool has_ttft = result.counts.ttft.count() > 0;
  const double felt = (has_ttft ? result.counts.ttft : result.counts.itl).percentile_us(50);
  if (late > std::max(kLateMicroseconds, kLateShare * felt)) {
    found.push_back(concat("the tool was late: p99 ", ms_text(late), " ms against a median ",
                           has_ttft ? "TTFT" : "ITL", " of ", ms_text(felt),
                           " ms. Its processor was busy, perhaps with the server."));
  }
  if (result.held_arrivals > 0) {
    found.push_back(concat(result.held_arrivals, " times requests were due while all ",
                           options.max_streams,
                           " streams of --max-streams were in use; they waited in the tool, and "
                           "their latencies count from when they were due"));
  }
  return found;
}

LoadReport make_report(const LoadOptions& options, std::string target, std::string began,
                       LoadResult result) {
  LoadReport report;
  report.target = std::move(target);
  report.load = describe_load(options);
  report.began = std::move(began);
  report.seed = options.workload.seed;
  report.target_ttft_ms = options.target_ttft_ms;
  report.target_itl_ms = options.target_itl_ms;
  report.has_targets = options.target_ttft_ms > 0 || options.target_itl_ms > 0;
  report.processors = own_processors();
  report.result = std::move(result);
  const LoadCounts& counts = report.result.counts;
  report.warnings = find_ceilings(options, report.result, report.processors);
  if (report.result.interrupted) report.warnings.emplace_back("the run was stopped before its end");
  if (counts.unfinished > 0) {
    report.warnings.push_back(
        concat(counts.unfinished,
               " requests were not finished when the run was: they count with the time that they "
               "had taken by then"));
  }
  if (report.asked() == 0)
    report.warnings.emplace_back(
        "no request that counts has ended: the run was short for answers this long");
  return report;
}

std::vector<NamedLatency> latencies_of(const LoadCounts& counts) {
  return {{"ttft", "time to first token", &counts.ttft},
          {"itl", "between messages (ITL)", &counts.itl},
          {"tpot", "per token, by request", &counts.tpot},
          {"e2e", "end to end", &counts.total},
          {"queue", "in the server's queue", &counts.queue},
          {"lateness", "tool's own lateness", &counts.lateness}};
}

}  // namespace sluice
