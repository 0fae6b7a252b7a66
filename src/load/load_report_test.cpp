#include "load/load_report.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <regex>
#include <string>

namespace sluice {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

LoadReport sample(LoadOptions options = LoadOptions()) {
  LoadResult result;
  LoadCounts& counts = result.counts;
  for (int i = 1; i <= 100; ++i) {
    counts.ttft.record(i * 1ms);
    counts.itl.record(5ms);
    counts.total.record(200ms);
  }
  counts.succeeded = 100;
  counts.good = 80;
  counts.failed = 2;
  counts.errors["<UNAVAILABLE>"] = 2;
  counts.tokens = 1000;
  counts.messages = 500;
  result.window_seconds = 10;
  result.own_cpu_seconds = 2;
  result.servers = {{"a:1", 5.0, 10.0}, {"b:2", std::nullopt, 0}};
  TimelineInterval interval;
  interval.end = 1s;
  interval.tokens = 100;
  interval.itl.record(5ms);
  result.timeline = {interval, interval};
  options.target_ttft_ms = 50;
  return make_report(options, "<host>:1", "2020-01-01T00:00:00Z", std::move(result));
}

// Where a number should stand.
bool has_no_number(const std::string& html) {
  return std::regex_search(html, std::regex("[ ML>\"]-?(nan|inf)"));
}

TEST(LoadReport, JsonHasTheMembersThatTheDocsName) {
  const json::value value = json::parse(report_json(sample()));
  EXPECT_EQ(value.at("target"), "<host>:1");
  EXPECT_EQ(value.at("requests").at("succeeded").to_number<int>(), 100);
  EXPECT_EQ(value.at("requests").at("succeeded_per_second").to_number<double>(), 10);
  EXPECT_EQ(value.at("requests").at("errors").at("<UNAVAILABLE>").to_number<int>(), 2);
  EXPECT_EQ(value.at("tokens").at("received_per_second").to_number<double>(), 100);
  EXPECT_NEAR(value.at("goodput").at("share").to_number<double>(), 80 / 102.0, 1e-9);
  for (const char* which : {"ttft", "itl", "tpot", "e2e", "queue", "lateness"}) {
    for (const char* member : {"count", "mean_ms", "min_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms",
                               "p99.9_ms", "max_ms"}) {
      EXPECT_NO_THROW(static_cast<void>(value.at("latency").at(which).at(member)))
          << which << " " << member;
    }
  }
  EXPECT_NEAR(value.at("latency").at("ttft").at("p50_ms").to_number<double>(), 50, 0.1);
  EXPECT_EQ(value.at("servers").at(0).at("processors").to_number<double>(), 0.5);
  EXPECT_TRUE(value.at("servers").at(1).at("cpu_seconds").is_null());
  EXPECT_EQ(value.at("timeline").as_array().size(), 2U);
  EXPECT_TRUE(value.at("warnings").as_array().empty());
}

TEST(LoadReport, HtmlNeedsNothingFromElsewhereAndEscapesNames) {
  const std::string html = report_html(sample());
  EXPECT_NE(html.find("&lt;host&gt;:1"), std::string::npos);
  EXPECT_EQ(html.find("<host>"), std::string::npos);
  EXPECT_EQ(html.find("<UNAVAILABLE>"), std::string::npos);
  for (const char* foreign : {"<script", "<link", "<img", "src=", "url(", "@import", "http"})
    EXPECT_EQ(html.find(foreign), std::string::npos) << foreign;
  std::size_t plots = 0;
  for (std::size_t at = html.find("<svg"); at != std::string::npos; at = html.find("<svg", at + 1))
    ++plots;
  EXPECT_EQ(plots, 5U);
  EXPECT_FALSE(has_no_number(html));
}

TEST(LoadReport, RunWithoutAnythingStillHasAReport) {
  const LoadReport report = make_report(LoadOptions(), "h:1", "", LoadResult());
  EXPECT_FALSE(report.warnings.empty());
  EXPECT_NE(report_text(report).find("WARNING"), std::string::npos);
  EXPECT_NO_THROW(static_cast<void>(json::parse(report_json(report))));
  EXPECT_FALSE(has_no_number(report_html(report)));
}

TEST(LoadReport, ToolSaysWhenItWasTheBottleneck) {
  LoadOptions options;
  LoadResult result;
  result.window_seconds = 10;
  result.own_cpu_seconds = 15;
  EXPECT_TRUE(find_ceilings(options, result, 4).empty());
  EXPECT_EQ(find_ceilings(options, result, 1).size(), 1U) << "of its processor it had no more";

  result.own_cpu_seconds = 1;
  for (int i = 0; i < 100; ++i) result.counts.ttft.record(10ms);
  for (int i = 0; i < 100; ++i) result.lag.record(1ms);
  EXPECT_TRUE(find_ceilings(options, result, 1).empty());
  for (int i = 0; i < 10; ++i) result.lag.record(30ms);
  EXPECT_EQ(find_ceilings(options, result, 1).size(), 1U) << "late";

  result.held_arrivals = 3;
  EXPECT_EQ(find_ceilings(options, result, 1).size(), 2U) << "out of streams";
}

TEST(Timeline, LongRunHasNoMoreIntervalsAndLosesNothing) {
  const TimePoint start{1h};
  Timeline timeline(start);
  for (int second = 1; second <= 3000; ++second) {
    TimelineInterval interval;
    interval.tokens = 2;
    interval.itl.record(std::chrono::milliseconds(second));
    timeline.close_interval(start + std::chrono::seconds(second), interval);
    ASSERT_LE(timeline.intervals().size(), Timeline::kMost);
  }
  std::uint64_t tokens = 0;
  std::uint64_t gaps = 0;
  Duration before{};
  for (const TimelineInterval& each : timeline.intervals()) {
    EXPECT_EQ(each.begin, before);
    before = each.end;
    tokens += each.tokens;
    gaps += each.itl.count();
  }
  EXPECT_EQ(before, 3000s);
  EXPECT_EQ(tokens, 6000U);
  EXPECT_EQ(gaps, 3000U);
}

}  // namespace
}  // namespace sluice
