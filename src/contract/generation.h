// What a generation request and its answer are, once, in plain C++. contract/wire maps them to and
// from protobuf. Defaults here are the contract's (proto/inference.proto says what each field
// means, in which units and bounds). Thread: any (values).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

using Token = std::int32_t;

struct Part {
  std::string bytes;
  std::string mime_type;          // "" is text
  bool cache_breakpoint = false;  // the prompt up to here is worth keeping
};

enum class Role { kSystem, kUser, kAssistant, kTool };

struct Message {
  Role role = Role::kUser;
  std::vector<Part> parts;
};

struct Sampling {
  float temperature = 1.0F;
  float top_p = 1.0F;
  std::int32_t top_k = 0;  // 0: off
  float min_p = 0.0F;
  float frequency_penalty = 0.0F;
  float presence_penalty = 0.0F;
  float repetition_penalty = 1.0F;
  std::optional<std::uint64_t> seed;
  std::vector<std::pair<Token, float>> logit_bias;
  std::optional<std::int32_t> top_logprobs;  // absent: no logprobs at all
};

// When a generation ends.
struct Stopping {
  std::optional<std::int32_t> max_tokens;  // absent: the context's end
  std::int32_t min_tokens = 0;
  bool ignore_eos = false;
  std::vector<std::string> stop;
};

// What to generate from: exactly one of the two. No messages and no raw text: the model's start
// token alone.
struct PromptSource {
  std::vector<Message> messages;
  std::optional<std::string> raw;
};

// What to do with the KV cache of a prompt. A replica without a prefix cache has nothing to do for
// any of it.
struct CacheHints {
  bool no_cache = false;                     // don't read from the cache
  bool no_store = false;                     // keep nothing of this request
  std::optional<std::uint32_t> ttl_seconds;  // how long a breakpoint is kept, if it can be
  std::string salt;                          // prefixes are shared with the same salt only
};

struct GenerationRequest {
  std::string model;
  PromptSource prompt;
  Sampling sampling;
  Stopping stopping;
  std::int32_t n = 1;
  std::int32_t priority = 0;
  std::string session_id;
  CacheHints cache;
};

enum class FinishReason { kStop, kLength };

struct TokenLogprob {
  struct Candidate {
    Token token = 0;
    float logprob = 0;
    std::string piece;
  };
  Candidate chosen;
  std::vector<Candidate> top;  // likeliest first
};

// Some bytes of one choice's answer, on their way from the engine thread to the wire.
struct Delta {
  std::uint32_t index = 0;   // choice
  std::uint32_t tokens = 0;  // how many tokens `bytes` stands for
  std::string bytes;         // exact; may begin and end inside a character
  std::vector<TokenLogprob> logprobs;
  std::optional<FinishReason> finish_reason;  // set on the choice's last delta
  std::string matched_stop;
};

struct Timings {
  std::chrono::microseconds queued{0};
  std::chrono::microseconds prefill{0};
  std::chrono::microseconds decode{0};
  std::chrono::microseconds parked{0};
  std::uint32_t recomputed_tokens = 0;
};

// The counts of a whole request, all choices together.
struct Usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint32_t cached_tokens = 0;
  std::uint32_t cache_write_tokens = 0;
  Timings timings;
};

// A delta as a gateway gets it from a replica.
struct ReceivedDelta {
  Delta delta;                          // `tokens`: those since this choice's last delta
  std::uint32_t prompt_tokens = 0;      // of the whole request, on each
  std::uint32_t completion_tokens = 0;  // of this choice so far
  std::string model;                    // the model that answers, on the first
  std::optional<Usage> usage;           // on the last
};

// How loaded a replica is; what Load in the contract says.
struct Load {
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  std::uint32_t parked = 0;
  std::uint64_t kv_used_tokens = 0;
  std::uint64_t kv_capacity_tokens = 0;
  float tokens_per_second = 0;
  std::uint64_t prefill_backlog_tokens = 0;
  bool draining = false;
};

}  // namespace sluice
