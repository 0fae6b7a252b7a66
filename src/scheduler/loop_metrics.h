// LoopMetrics: what the engine loop counts. One add or set for each step, not for each token,
// wherever that says the same. Thread: engine (the series themselves: any).
#pragma once

#include "base/metrics.h"
#include "contract/limits.h"

namespace sluice {

struct LoopMetrics {
  LoopMetrics(Metrics& metrics, const Limits& limits);

  Gauge running, parked, slots_used, kv_used_tokens, kv_capacity_tokens, prefix_cache_tokens;
  Gauge next_wait_seconds;
  Counter prompt_tokens, cached_prompt_tokens, generated_tokens, steps, decode_rows, prefill_rows;
  Counter finished, cancelled, expired, late, not_read, failed;  // requests, by how they ended
  Counter parkings, put_back, aborted_steps, failed_steps, recomputed_tokens;
  Histogram step_seconds, queue_seconds, ttft_seconds, itl_seconds, cancel_to_free_seconds;
};

}  // namespace sluice
