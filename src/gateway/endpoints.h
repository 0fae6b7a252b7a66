// Endpoints: what each route answers, but for those that generate (completion.h).
// Bounded by the request, which is whole, and the answer, which its own bounds keep small. Thread:
// its I/O thread.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "base/metrics.h"
#include "gateway/exchange.h"
#include "gateway/gateway_limits.h"
#include "gateway/rate_limits.h"
#include "gateway/replica_pool.h"
#include "gateway/request_times.h"

namespace sluice {

class Endpoints {
 public:
  // All references outlive it.
  Endpoints(ReplicaPool& pool, RateLimits& rates, const Metrics& metrics,
            const GatewayLimits& limits) noexcept
      : pool_(pool), rates_(rates), metrics_(metrics), limits_(limits) {}

  [[nodiscard]] Task<void> embeddings(Exchange& exchange, RequestTimes times);
  [[nodiscard]] Task<void> tokenize(Exchange& exchange, RequestTimes times);
  [[nodiscard]] Task<void> models(Exchange& exchange);
  [[nodiscard]] Task<void> model(Exchange& exchange, std::string_view name);
  // 200 as long as the process lives.
  [[nodiscard]] Task<void> health(Exchange& exchange);
  // 200 if a replica takes requests and nothing drains, else 503.
  [[nodiscard]] Task<void> ready(Exchange& exchange, bool draining);
  [[nodiscard]] Task<void> metrics(Exchange& exchange);

 private:
  // Calls `call(choice)` on one replica after the other until one answers.
  template <typename Answer, typename Call>
  [[nodiscard]] Task<Result<Answer>> anywhere(Exchange& exchange, const Routing& routing,
                                              Call call);

  ReplicaPool& pool_;
  RateLimits& rates_;
  const Metrics& metrics_;
  const GatewayLimits& limits_;
};

}  // namespace sluice
