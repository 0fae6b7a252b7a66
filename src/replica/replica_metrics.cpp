#include "replica/replica_metrics.h"

#include <string>

#include "base/code_name.h"

namespace sluice {
namespace {

constexpr std::optional<Code> kCodes[] = {
    std::nullopt,    Code::kCancelled,        Code::kInvalidArgument,   Code::kDeadlineExceeded,
    Code::kNotFound, Code::kPermissionDenied, Code::kResourceExhausted, Code::kUnimplemented,
    Code::kInternal, Code::kUnavailable,      Code::kUnauthenticated,
};

constexpr const char* kMethodNames[kMethods] = {"Generate", "Embed",     "CountTokens", "Attach",
                                                "Describe", "WatchLoad", "Drain"};

OutputMetrics output_metrics(Metrics& metrics, const char* method) {
  const Metrics::Labels labels = {{"method", method}};
  return {
      .messages = metrics.counter("sluice_messages_sent_total", "gRPC messages with generated text",
                                  labels),
      .items = metrics.counter("sluice_responses_sent_total", "GenerateResponses in these messages",
                               labels),
      .tokens = metrics.counter("sluice_tokens_sent_total", "Tokens that these responses stand for",
                                labels),
      .bytes = metrics.counter("sluice_delta_bytes_sent_total", "Bytes of generated text", labels),
      .first_seconds = metrics.histogram("sluice_first_response_seconds",
                                         "From a request's arrival to its first response",
                                         Metrics::seconds_bounds(), labels),
  };
}

Gauge watches_open(Metrics& metrics, const char* method) {
  return metrics.gauge("sluice_watches_open", "Calls that stay open for their news",
                       {{"method", method}});
}

Counter watches_refused(Metrics& metrics, const char* method) {
  return metrics.counter("sluice_watches_refused_total", "Such calls refused by --max-watches",
                         {{"method", method}});
}

}  // namespace

const char* method_name(Method method) noexcept {
  return kMethodNames[static_cast<std::size_t>(method)];
}

ReplicaMetrics::ReplicaMetrics(Metrics& metrics)
    : generate(output_metrics(metrics, "Generate")),
      attach(output_metrics(metrics, "Attach")),
      generate_open(
          metrics.gauge("sluice_generate_calls_open", "Generate calls that have not ended")),
      generate_cut(metrics.counter("sluice_generate_calls_cut_total",
                                   "Generate calls reset, for their client took nothing for long")),
      attach_open(metrics.gauge("sluice_attach_calls_open", "Attach calls that have not ended")),
      attached_requests(
          metrics.gauge("sluice_attached_requests", "Requests running on Attach calls")),
      attached_refused(metrics.counter("sluice_attached_requests_refused_total",
                                       "Starts refused by --max-attached-requests")),
      load_watches(watches_open(metrics, "WatchLoad")),
      load_watches_refused(watches_refused(metrics, "WatchLoad")),
      health_watches(watches_open(metrics, "Health/Watch")),
      health_watches_refused(watches_refused(metrics, "Health/Watch")),
      preparing(
          metrics.gauge("sluice_requests_preparing", "Requests waiting to be tokenised, or being")),
      prepare_skipped(metrics.counter("sluice_prepare_skipped_total",
                                      "Requests cancelled or expired before they were tokenised")),
      embeds_queued(metrics.gauge("sluice_embeds_queued", "Embed calls waiting for the embedder")),
      embeds_refused(metrics.counter("sluice_embeds_refused_total",
                                     "Embed calls refused by --max-queued-embeds")) {
  for (std::size_t method = 0; method < kMethods; ++method) {
    for (const std::optional<Code> code : kCodes) {
      calls_[method].push_back(
          metrics.counter("sluice_calls_total", "Calls that ended, by method and status code",
                          {{"method", kMethodNames[method]}, {"code", code_name(code)}}));
    }
  }
}

void ReplicaMetrics::count_call(Method method, std::optional<Code> failure) noexcept {
  std::vector<Counter>& counters = calls_[static_cast<std::size_t>(method)];
  for (std::size_t i = 0; i < std::size(kCodes); ++i) {
    if (kCodes[i] == failure) counters[i].add();
  }
}

}  // namespace sluice
