// ReplicaLinks: the ways of one I/O thread to every replica of the pool. A generation goes over the
// step stream (one Attach call per replica, attached again after a break); one whose request is
// larger than
// --large-request-bytes, or whose replica has no Attach, as a Generate call of its own over pooled
// channels, each with its own connection, least in flight first, another opened above
// --calls-per-channel. How each request ended is told to the pool. Thread: its I/O thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "contract/generation.h"
#include "gateway/asio.h"
#include "gateway/gateway_limits.h"
#include "gateway/replica_pool.h"
#include "gateway/replica_stream.h"
#include "gateway/wake_up.h"

namespace sluice {

// What goes along with every call.
struct CallContext {
  TimePoint deadline = kForever;
  std::string request_id;
  std::string traceparent;
};

struct EmbedAnswer {
  std::vector<std::vector<float>> embeddings;
  std::uint32_t prompt_tokens = 0;
  std::string model;
};

struct TokenCount {
  std::uint32_t tokens = 0;
  std::uint32_t context_tokens = 0;
};

class ReplicaLinks {
 public:
  // `io` is the I/O thread's; `pool` outlives this.
  ReplicaLinks(ReplicaPool& pool, asio::io_context& io, const GatewayLimits& limits);
  ~ReplicaLinks();
  ReplicaLinks(const ReplicaLinks&) = delete;
  ReplicaLinks& operator=(const ReplicaLinks&) = delete;

  // A replica that is gone ends the stream with kUnavailable. `reader` is notified of what comes,
  // and outlives the stream.
  [[nodiscard]] ReplicaStream generate(ReplicaId replica, const GenerationRequest& request,
                                       const CallContext& context, WakeUp& reader);
  // Cancelling the task cancels the call.
  [[nodiscard]] Task<Result<EmbedAnswer>> embed(ReplicaId replica, std::string model,
                                                std::vector<std::string> inputs,
                                                CallContext context);
  [[nodiscard]] Task<Result<TokenCount>> count_tokens(ReplicaId replica, std::string model,
                                                      PromptSource prompt, CallContext context);

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice
