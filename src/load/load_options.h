// LoadOptions: what `sluice bench` does to whom. Thread: any (values).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/arrivals.h"
#include "load/length_distribution.h"

namespace sluice {

enum class LoadProtocol { kGrpc, kRest };

// Who is asked, and over what.
struct TargetOptions {
  LoadProtocol protocol = LoadProtocol::kGrpc;
  std::string host;
  std::string port;
  std::string path;  // REST: before /v1/…
  bool tls = false;
  std::string authority;       // PEM; empty: the system's authorities
  std::string key;             // sent as a bearer; empty: none
  std::uint32_t channels = 1;  // gRPC: connections, each with its share of the streams
  bool attach = false;         // gRPC: one step stream a channel instead of a call a request
  std::uint32_t threads = 0;   // REST: that read and write; 0: one a processor, at most 4
  std::chrono::milliseconds timeout{0};  // of a request; 0: none
};

// What is asked.
struct WorkloadOptions {
  std::string model = "local";
  LengthDistribution prompt_tokens{32};
  LengthDistribution output_tokens{64};
  std::string prompts_text;  // JSON lines instead of made-up prompts
  std::uint32_t shared_prefix_tokens = 0;
  std::uint32_t prefix_groups = 1;
  float temperature = 0;
  std::optional<float> top_p;
  bool ignore_eos = true;
  std::uint64_t seed = 1;
  double slow_share = 0;              // of the requests, 0 to 1
  double slow_tokens_per_second = 5;  // that those read
  double cancel_share = 0;
  std::uint32_t cancel_after_tokens = 0;
  std::chrono::milliseconds cancel_after{0};
};

struct LoadOptions {
  TargetOptions target;
  WorkloadOptions workload;
  std::uint32_t concurrency = 8;  // closed loop: users
  double rate = 0;                // requests per second; above 0: open loop
  ArrivalProcess arrivals = ArrivalProcess::kPoisson;
  std::uint32_t max_streams = 10'000;  // open loop: most requests under way
  std::chrono::milliseconds think_time{0};
  std::chrono::milliseconds ramp{0};  // closed loop: over which users begin
  std::chrono::milliseconds duration{10'000};
  std::uint64_t requests = 0;               // above 0: this many instead of a duration
  double warm_up_share = 0.1;               // of the duration or the requests, not counted
  std::chrono::milliseconds grace{30'000};  // after the last arrival, for what still runs
  double target_ttft_ms = 0;                // 0: none
  double target_itl_ms = 0;
  std::vector<std::string> server_metrics;  // HOST:PORT, or a URL of http
  std::vector<std::int32_t> server_pids;
};

}  // namespace sluice
