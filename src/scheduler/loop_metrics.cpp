#include "scheduler/loop_metrics.h"

namespace sluice {
namespace {

Counter ended(Metrics& metrics, const char* how) {
  return metrics.counter("sluice_requests_ended_total", "Requests that left the scheduler, by how",
                         {{"how", how}});
}

Histogram seconds(Metrics& metrics, const char* name, const char* help) {
  return metrics.histogram(name, help, Metrics::seconds_bounds());
}

}  // namespace

LoopMetrics::LoopMetrics(Metrics& m, const Limits& limits)
    : running(m.gauge("sluice_running_sequences", "Sequences in the batch")),
      parked(m.gauge("sluice_parked_sequences",
                     "Sequences whose client does not read: KV kept, not in the batch")),
      slots_used(m.gauge("sluice_slots_used", "Slots of the KV cache in use, running and parked")),
      kv_used_tokens(m.gauge("sluice_kv_used_tokens",
                             "Tokens of running and parked sequences in the KV cache")),
      kv_capacity_tokens(m.gauge("sluice_kv_capacity_tokens", "Tokens that the KV cache holds")),
      prefix_cache_tokens(m.gauge("sluice_prefix_cache_tokens",
                                  "Tokens of ended sequences kept in the KV cache for others")),
      next_wait_seconds(m.gauge("sluice_next_wait_seconds",
                                "What the next request in the queue is expected to wait there")),
      prompt_tokens(m.counter("sluice_prompt_tokens_total",
                              "Prompt tokens of requests that got their first row")),
      cached_prompt_tokens(m.counter("sluice_cached_prompt_tokens_total",
                                     "Prompt tokens whose KV was found in the prefix cache")),
      generated_tokens(m.counter("sluice_generated_tokens_total", "Tokens sampled")),
      steps(m.counter("sluice_steps_total", "Forward passes")),
      decode_rows(m.counter("sluice_step_rows_total", "Rows computed", {{"phase", "decode"}})),
      prefill_rows(m.counter("sluice_step_rows_total", "Rows computed", {{"phase", "prefill"}})),
      finished(ended(m, "finished")),
      cancelled(ended(m, "cancelled")),
      expired(ended(m, "deadline")),
      late(ended(m, "late")),
      not_read(ended(m, "not_read")),
      failed(ended(m, "failed")),
      parkings(m.counter("sluice_parkings_total",
                         "Times that a request was parked because its stream was full")),
      put_back(m.counter("sluice_put_back_total",
                         "Sequences that lost their KV to others, to be computed again")),
      aborted_steps(m.counter("sluice_aborted_steps_total",
                              "Forward passes stopped because nobody wanted them any more")),
      failed_steps(
          m.counter("sluice_failed_steps_total", "Forward passes in which the engine failed")),
      recomputed_tokens(
          m.counter("sluice_recomputed_tokens_total", "Tokens of sequences that were put back")),
      step_seconds(
          seconds(m, "sluice_step_seconds", "Duration of a forward pass with its sampling")),
      queue_seconds(seconds(m, "sluice_queue_seconds", "From admission to the first row")),
      ttft_seconds(seconds(m, "sluice_ttft_seconds", "From admission to the first token")),
      itl_seconds(
          seconds(m, "sluice_itl_seconds", "Between two tokens of one choice, parking left out")),
      cancel_to_free_seconds(seconds(m, "sluice_cancel_to_free_seconds",
                                     "From the reader's going to the sequence's KV being free")) {
  m.gauge("sluice_sequences_limit", "--max-sequences").set(limits.max_sequences);
  m.gauge("sluice_step_tokens_limit", "--max-step-tokens").set(limits.max_step_tokens);
}

}  // namespace sluice
