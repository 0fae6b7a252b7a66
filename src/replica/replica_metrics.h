// ReplicaMetrics: what the wire side of a replica counts. Made once at start.
// Bounded: methods × codes are fixed.
// Thread: any.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/metrics.h"

namespace sluice {

enum class Method { kGenerate, kEmbed, kCountTokens, kAttach, kDescribe, kWatchLoad, kDrain };
inline constexpr std::size_t kMethods = 7;

[[nodiscard]] const char* method_name(Method method) noexcept;

// What one service sends down: a Generate call's messages or an Attach call's items.
struct OutputMetrics {
  Counter messages;  // gRPC messages
  Counter items;     // GenerateResponses in them
  Counter tokens;    // tokens that these stand for: tokens / items is how far deltas were joined
  Counter bytes;     // of delta
  Histogram first_seconds;  // from a request's arrival to its first delta
};

struct ReplicaMetrics {
  explicit ReplicaMetrics(Metrics& metrics);

  // A call ended; no code is OK.
  void count_call(Method method, std::optional<Code> failure) noexcept;

  OutputMetrics generate;
  OutputMetrics attach;
  Gauge generate_open;      // Generate calls
  Counter generate_cut;     // of clients that took nothing
  Gauge attach_open;        // Attach calls
  Gauge attached_requests;  // running on them
  Counter attached_refused;
  Gauge load_watches;  // WatchLoad calls that are open
  Counter load_watches_refused;
  Gauge health_watches;  // Watch calls of health
  Counter health_watches_refused;
  Gauge preparing;          // requests waiting to be tokenised
  Counter prepare_skipped;  // cancelled or expired while they waited
  Gauge embeds_queued;
  Counter embeds_refused;

 private:
  std::array<std::vector<Counter>, kMethods> calls_;  // by the code's place in a table
};

}  // namespace sluice
