// A LoadReport as JSON: docs/bench.md names its members.
#include <boost/json.hpp>

#include "load/load_report.h"

namespace sluice {
namespace {

namespace json = boost::json;

json::object latency_object(const LatencyHistogram& latency) {
  json::object object{{"count", latency.count()},
                      {"mean_ms", latency.mean_us() / 1000},
                      {"min_ms", static_cast<double>(latency.min_us()) / 1000}};
  for (const Percentile& percentile : kPercentiles) {
    object[std::string(percentile.key) + "_ms"] = latency.percentile_us(percentile.percent) / 1000;
  }
  return object;
}

json::object requests_object(const LoadReport& report) {
  const LoadCounts& counts = report.result.counts;
  json::object errors;
  for (const auto& [error, times] : counts.errors) errors[error] = times;
  return {{"succeeded", counts.succeeded},
          {"succeeded_per_second", report.per_second(static_cast<double>(counts.succeeded))},
          {"failed", counts.failed},
          {"cancelled", counts.cancelled},
          {"slow_readers", counts.slow},
          {"unfinished", counts.unfinished},
          {"not_started", counts.not_started},
          {"errors", std::move(errors)}};
}

json::object tokens_object(const LoadReport& report) {
  const LoadCounts& counts = report.result.counts;
  return {{"received", counts.tokens},
          {"received_per_second", report.per_second(static_cast<double>(counts.tokens))},
          {"messages", counts.messages},
          {"prompt", counts.prompt_tokens},
          {"cached", counts.cached_tokens},
          {"completion", counts.completion_tokens}};
}

json::array timeline_array(const LoadReport& report) {
  json::array array;
  for (const TimelineInterval& each : report.result.timeline) {
    const double seconds = each.seconds() > 0 ? each.seconds() : 1;
    array.push_back(json::object{{"begin_s", std::chrono::duration<double>(each.begin).count()},
                                 {"end_s", std::chrono::duration<double>(each.end).count()},
                                 {"tokens_per_second", static_cast<double>(each.tokens) / seconds},
                                 {"ended_per_second", static_cast<double>(each.ended) / seconds},
                                 {"failed", each.failed},
                                 {"running", each.running},
                                 {"ttft_p50_ms", each.ttft.percentile_us(50) / 1000},
                                 {"ttft_p99_ms", each.ttft.percentile_us(99) / 1000},
                                 {"itl_p50_ms", each.itl.percentile_us(50) / 1000},
                                 {"itl_p99_ms", each.itl.percentile_us(99) / 1000}});
  }
  return array;
}

json::array servers_array(const LoadReport& report) {
  json::array array;
  for (const ServerCpu& server : report.result.servers) {
    json::object object{{"name", server.name}, {"cpu_seconds", nullptr}, {"processors", nullptr}};
    if (server.seconds && server.over > 0) {
      object["cpu_seconds"] = *server.seconds;
      object["processors"] = *server.seconds / server.over;
    }
    array.push_back(std::move(object));
  }
  return array;
}

}  // namespace

std::string report_json(const LoadReport& report) {
  const LoadResult& result = report.result;
  json::object object{{"target", report.target},
                      {"load", report.load},
                      {"began", report.began},
                      {"seed", report.seed},
                      {"seconds", result.window_seconds},
                      {"warm_up_seconds", result.warm_up_seconds},
                      {"interrupted", result.interrupted},
                      {"requests", requests_object(report)},
                      {"tokens", tokens_object(report)}};
  if (report.has_targets) {
    const auto good = static_cast<double>(result.counts.good);
    object["goodput"] = json::object{
        {"target_ttft_ms", report.target_ttft_ms},
        {"target_itl_ms", report.target_itl_ms},
        {"good", result.counts.good},
        {"per_second", report.per_second(good)},
        {"share", report.asked() == 0 ? 0 : good / static_cast<double>(report.asked())}};
  }
  json::object latencies;
  for (const NamedLatency& each : latencies_of(result.counts)) {
    latencies[each.key] = latency_object(*each.latency);
  }
  object["latency"] = std::move(latencies);
  object["servers"] = servers_array(report);
  object["tool"] = json::object{{"cpu_seconds", result.own_cpu_seconds},
                                {"processors", report.own_cpu()},
                                {"processors_available", report.processors},
                                {"peak_bytes", result.own_peak_bytes},
                                {"streams", result.streams},
                                {"held_arrivals", result.held_arrivals},
                                {"timer_lag", latency_object(result.lag)}};
  object["warnings"] = json::array(report.warnings.begin(), report.warnings.end());
  object["timeline"] = timeline_array(report);
  return json::serialize(object) + "\n";
}

}  // namespace sluice
