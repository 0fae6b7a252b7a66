#include "load/live_view.h"

#include <cstdio>
#include <string>

#include "base/concat.h"
#include "load/number_text.h"

namespace sluice {
namespace {

std::string percentiles(const LatencyHistogram& latency) {
  if (latency.count() == 0) return "-";
  return concat("p50 ", ms_text(latency.percentile_us(50)), "  p99 ",
                ms_text(latency.percentile_us(99)), " ms");
}

}  // namespace

LiveView::~LiveView() { wipe(); }

void LiveView::wipe() {
  for (; drawn_ > 0; --drawn_) std::fputs("\x1B[A\x1B[2K", stderr);
}

void LiveView::show(const LiveFigures& figures) {
  const TimelineInterval& last = *figures.last;
  const double seconds = last.seconds() > 0 ? last.seconds() : 1;
  const char* const phase = figures.finishing    ? "finishing"
                            : figures.warming_up ? "warming up"
                                                 : "measuring";
  const std::string head = concat(fixed_text(figures.elapsed_seconds, 0), " s ", phase, "  ",
                                  figures.running, " running");
  const std::string rates =
      concat(short_text(static_cast<double>(last.tokens) / seconds), " tokens/s  ",
             short_text(static_cast<double>(last.ended) / seconds), " requests/s");
  const std::string totals = concat(figures.ended, " ended, ", figures.failed, " failed");
  if (!terminal_) {
    std::fprintf(stderr, "%s  %s  %s  TTFT %s  ITL %s\n", head.c_str(), rates.c_str(),
                 totals.c_str(), percentiles(last.ttft).c_str(), percentiles(last.itl).c_str());
    return;
  }
  wipe();
  std::fprintf(stderr, "%s\n  %s  %s\n  TTFT %s\n  ITL  %s\n", head.c_str(), rates.c_str(),
               totals.c_str(), percentiles(last.ttft).c_str(), percentiles(last.itl).c_str());
  drawn_ = 4;
}

}  // namespace sluice
