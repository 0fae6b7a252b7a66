// A LoadReport for the terminal.
#include <algorithm>

#include "base/concat.h"
#include "load/load_report.h"
#include "load/number_text.h"

namespace sluice {
namespace {

std::string right(std::string text, std::size_t width) {
  text.insert(0, width - std::min(width, text.size()), ' ');
  return text;
}

std::string left(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string line(std::string_view name, std::string_view value) {
  return concat("  ", left(std::string(name), 24), value, "\n");
}

std::string requests_text(const LoadReport& report) {
  const LoadCounts& counts = report.result.counts;
  std::string text =
      line("requests", concat(counts.succeeded, " answered (",
                              short_text(report.per_second(static_cast<double>(counts.succeeded))),
                              "/s), ", counts.failed, " failed"));
  if (counts.cancelled > 0) text += line("cancelled as planned", std::to_string(counts.cancelled));
  if (counts.slow > 0) text += line("slow readers", std::to_string(counts.slow));
  if (counts.unfinished > 0) text += line("not finished", std::to_string(counts.unfinished));
  if (counts.not_started > 0) text += line("due, never begun", std::to_string(counts.not_started));
  if (report.has_targets) {
    const double share = report.asked() == 0 ? 0
                                             : 100 * static_cast<double>(counts.good) /
                                                   static_cast<double>(report.asked());
    text += line("goodput", concat(short_text(report.per_second(static_cast<double>(counts.good))),
                                   "/s (", fixed_text(share, 1), " % of all)"));
  }
  for (const auto& [error, times] : counts.errors)
    text += line("error " + error, std::to_string(times));
  return text;
}

std::string tokens_text(const LoadReport& report) {
  const LoadCounts& counts = report.result.counts;
  std::string text =
      line("tokens received",
           concat(short_text(report.per_second(static_cast<double>(counts.tokens))), "/s, ",
                  fixed_text(counts.messages == 0 ? 0
                                                  : static_cast<double>(counts.tokens) /
                                                        static_cast<double>(counts.messages),
                             2),
                  " a message"));
  if (counts.succeeded == 0) return text;
  const auto succeeded = static_cast<double>(counts.succeeded);
  return text +
         line(
             "tokens a request",
             concat(short_text(static_cast<double>(counts.prompt_tokens) / succeeded), " in (",
                    short_text(static_cast<double>(counts.cached_tokens) / succeeded), " cached), ",
                    short_text(static_cast<double>(counts.completion_tokens) / succeeded), " out"));
}

std::string latencies_text(const LoadReport& report) {
  std::string text = concat("\n  ", left("latency in ms", 24));
  for (const Percentile& percentile : kPercentiles) text += right(std::string(percentile.key), 10);
  text += right("mean", 10) + right("count", 11) + "\n";
  for (const NamedLatency& each : latencies_of(report.result.counts)) {
    if (each.latency->count() == 0) continue;
    text += "  " + left(std::string(each.name), 24);
    for (const Percentile& percentile : kPercentiles) {
      text += right(ms_text(each.latency->percentile_us(percentile.percent)), 10);
    }
    text += right(ms_text(each.latency->mean_us()), 10);
    text += right(std::to_string(each.latency->count()), 11) + "\n";
  }
  return text;
}

std::string processors_text(const LoadReport& report) {
  const LoadResult& result = report.result;
  std::string text = "\n";
  for (const ServerCpu& server : result.servers) {
    if (!server.seconds || server.over <= 0) {
      text += line("processor of server", concat(server.name, " could not be read"));
      continue;
    }
    const double busy = *server.seconds / server.over;
    std::string figures = concat(server.name, " ", fixed_text(busy, 2), " processors");
    const double rate = report.per_second(static_cast<double>(result.counts.tokens));
    if (rate > 0) figures += concat(", ", short_text(busy / rate * 1e6), " µs a token");
    text += line("processor of server", figures);
  }
  return text + line("processor of the tool",
                     concat(fixed_text(report.own_cpu(), 2), " of ", report.processors,
                            ", timer late p99 ", ms_text(result.lag.percentile_us(99)),
                            " ms, memory at most ", result.own_peak_bytes >> 20, " MiB"));
}

}  // namespace

std::string report_text(const LoadReport& report) {
  std::string text = concat(report.target, ": ", report.load, "\n");
  text += line("counted", concat(fixed_text(report.result.window_seconds, 1), " s after ",
                                 fixed_text(report.result.warm_up_seconds, 1), " s of warm-up; ",
                                 report.result.streams, " streams"));
  text += requests_text(report) + tokens_text(report) + latencies_text(report) +
          processors_text(report);
  for (const std::string& warning : report.warnings) text += concat("WARNING: ", warning, "\n");
  return text;
}

}  // namespace sluice
