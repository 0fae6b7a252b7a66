// A LoadReport as a page of its own.
#include <cmath>

#include "base/concat.h"
#include "load/load_report.h"
#include "load/number_text.h"
#include "load/svg_plot.h"

namespace sluice {
namespace {

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>sluice bench</title><style>
:root{color-scheme:light dark;--back:#fff;--text:#1b1f24;--soft:#5c6670;--grid:#dde2e7;--card:#f5f7f9;
--s0:#1668c7;--s1:#c2410c;--s2:#15803d;--s3:#7e22ce;--warn:#b45309}
@media(prefers-color-scheme:dark){:root{--back:#14171a;--text:#e6e9ec;--soft:#9aa4ae;--grid:#2c3238;
--card:#1c2024;--s0:#6db3ff;--s1:#ff9a62;--s2:#6fd08c;--s3:#c79bff;--warn:#fbbf24}}
body{font:15px/1.5 system-ui,sans-serif;background:var(--back);color:var(--text);max-width:800px;margin:2em auto;padding:0 1em}
h1{font-size:1.4em;margin:0}.soft,small{color:var(--soft);font-weight:400}
.cards{display:flex;flex-wrap:wrap;gap:.8em;margin:1.2em 0}
.cards div{background:var(--card);border-radius:8px;padding:.6em 1em;flex:1 1 8em}.cards b{display:block;font-size:1.35em}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
td,th{padding:.3em .5em;text-align:right;border-bottom:1px solid var(--grid)}td:first-child,th:first-child{text-align:left}
figure{margin:1.6em 0}figcaption{font-weight:600}svg{width:100%;height:auto}svg text{fill:var(--soft);font-size:11px}
text.y{text-anchor:end;dominant-baseline:middle}text.x{text-anchor:middle}.grid{stroke:var(--grid)}.shade{fill:var(--card)}
.line{fill:none;stroke-width:1.8}path.s0{stroke:var(--s0)}path.s1{stroke:var(--s1)}path.s2{stroke:var(--s2)}path.s3{stroke:var(--s3)}
.legend{margin:0;color:var(--soft)}.legend span{margin-right:1.2em}.legend i{display:inline-block;width:1.2em;height:3px;margin-right:.4em;vertical-align:middle}
i.s0{background:var(--s0)}i.s1{background:var(--s1)}i.s2{background:var(--s2)}i.s3{background:var(--s3)}
.warn{border-left:4px solid var(--warn);padding:.4em .8em;background:var(--card)}
</style></head><body>
)";

std::string card(const std::string& name, const std::string& value) {
  return concat("<div><span class=\"soft\">", name, "</span><b>", value, "</b></div>");
}

std::string cards(const LoadReport& report) {
  const LoadCounts& counts = report.result.counts;
  const auto a_second = [&](std::uint64_t count) {
    return short_text(report.per_second(static_cast<double>(count)));
  };
  std::string html = "<div class=\"cards\">" + card("tokens/s", a_second(counts.tokens)) +
                     card("requests/s", a_second(counts.succeeded)) +
                     card("failed", std::to_string(counts.failed));
  if (report.has_targets) html += card("goodput/s", a_second(counts.good));
  html += card("TTFT p99", ms_text(counts.ttft.percentile_us(99)) + " ms");
  html += card("ITL p99", ms_text(counts.itl.percentile_us(99)) + " ms");
  for (const ServerCpu& server : report.result.servers) {
    if (!server.seconds || server.over <= 0) continue;
    html += card("processors of " + escape_html(server.name),
                 fixed_text(*server.seconds / server.over, 2));
  }
  return html + card("processors of the tool", fixed_text(report.own_cpu(), 2)) + "</div>\n";
}

std::string table(const LoadReport& report) {
  std::string html = "<table><tr><th>latency in ms</th>";
  for (const Percentile& percentile : kPercentiles) html += concat("<th>", percentile.key, "</th>");
  html += "<th>mean</th><th>count</th></tr>\n";
  for (const NamedLatency& each : latencies_of(report.result.counts)) {
    if (each.latency->count() == 0) continue;
    html += concat("<tr><td>", each.name, "</td>");
    for (const Percentile& percentile : kPercentiles)
      html += concat("<td>", ms_text(each.latency->percentile_us(percentile.percent)), "</td>");
    html += concat("<td>", ms_text(each.latency->mean_us()), "</td><td>", each.latency->count(),
                   "</td></tr>\n");
  }
  html += "</table>\n";
  if (report.result.counts.errors.empty()) return html;
  html += "<table><tr><th>error</th><th>requests</th></tr>";
  for (const auto& [error, times] : report.result.counts.errors)
    html += concat("<tr><td>", escape_html(error), "</td><td>", times, "</td></tr>");
  return html + "</table>\n";
}

// Each nine has as much room as the one before: that is where the tail is.
double nines(double percent) { return -std::log10(1 - percent / 100); }

std::string percentile_plot(const LoadReport& report) {
  SvgPlot plot{.title = "Percentiles", .unit = "ms, of all requests and gaps", .log_y = true};
  for (const double percent : {0.0, 50.0, 90.0, 99.0, 99.9, 99.99})
    plot.x_ticks.push_back({nines(percent), concat("p", short_text(percent))});
  plot.x_ticks[4].label = "p99.9";
  plot.x_ticks[5].label = "p99.99";
  for (const NamedLatency& each : latencies_of(report.result.counts)) {
    if (each.latency->count() == 0 || plot.lines.size() == 4 || each.key == "tpot") continue;
    PlotLine& line = plot.lines.emplace_back();
    line.name = each.name;
    const double last = nines(100 - 50.0 / static_cast<double>(each.latency->count()));
    for (double x = 0; x <= std::min(last, 4.0); x += 0.02) {
      line.x.push_back(x);
      line.y.push_back(each.latency->percentile_us(100 * (1 - std::pow(10, -x))) / 1000);
    }
  }
  return plot.svg();
}

template <typename Value>
PlotLine over_time(const LoadReport& report, std::string name, Value value) {
  PlotLine line{.name = std::move(name)};
  for (const TimelineInterval& each : report.result.timeline) {
    const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
    line.x.push_back((seconds(each.begin) + seconds(each.end)) / 2);
    line.y.push_back(value(each));
  }
  return line;
}

PlotLine latency_over_time(const LoadReport& report, LatencyHistogram TimelineInterval::*which,
                           const char* name, double percent) {
  return over_time(report, name, [=](const TimelineInterval& each) {
    const LatencyHistogram& latency = each.*which;
    return latency.count() == 0 ? -1 : latency.percentile_us(percent) / 1000;
  });
}

std::string time_plots(const LoadReport& report) {
  const double warm = report.result.warm_up_seconds;
  SvgPlot ttft{.title = "Time to first token", .unit = "ms", .shade_to = warm};
  SvgPlot itl{.title = "Between messages (ITL)", .unit = "ms", .shade_to = warm};
  SvgPlot tokens{.title = "Tokens", .unit = "per second", .shade_to = warm};
  SvgPlot requests{.title = "Requests", .unit = "under way; per second", .shade_to = warm};
  for (const auto& [name, percent] : {std::pair{"p50", 50.0}, {"p90", 90.0}, {"p99", 99.0}}) {
    ttft.lines.push_back(latency_over_time(report, &TimelineInterval::ttft, name, percent));
    itl.lines.push_back(latency_over_time(report, &TimelineInterval::itl, name, percent));
  }
  const auto rate = [](std::uint64_t count, const TimelineInterval& each) {
    return each.seconds() > 0 ? static_cast<double>(count) / each.seconds() : 0;
  };
  tokens.lines.push_back(over_time(
      report, "received", [&](const TimelineInterval& each) { return rate(each.tokens, each); }));
  requests.lines.push_back(over_time(report, "under way", [](const TimelineInterval& each) {
    return static_cast<double>(each.running);
  }));
  requests.lines.push_back(over_time(
      report, "ended/s", [&](const TimelineInterval& each) { return rate(each.ended, each); }));
  requests.lines.push_back(over_time(
      report, "failed/s", [&](const TimelineInterval& each) { return rate(each.failed, each); }));
  return ttft.svg() + itl.svg() + tokens.svg() + requests.svg();
}

}  // namespace

std::string report_html(const LoadReport& report) {
  std::string html = kHead;
  html += concat("<h1>", escape_html(report.target), "</h1><p class=\"soft\">",
                 escape_html(report.load), "; ", report.began, "; ",
                 fixed_text(report.result.window_seconds, 1), " s counted after ",
                 fixed_text(report.result.warm_up_seconds, 1), " s of warm-up (shaded); seed ",
                 report.seed, "</p>\n");
  for (const std::string& warning : report.warnings)
    html += concat("<p class=\"warn\">", escape_html(warning), "</p>\n");
  return html + cards(report) + table(report) + percentile_plot(report) + time_plots(report) +
         "</body></html>\n";
}

}  // namespace sluice
