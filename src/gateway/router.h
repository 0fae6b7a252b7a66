// Router: the gateway's HttpHandler: finds the route, answers preflights, names the request, asks
// for its key, keeps to --max-running-requests, runs the endpoint, counts and logs how it ended.
// What is answered before a body is parsed (401, 404, 405, 415, 503) is answered here. Thread:
// answer each on its I/O thread; the rest any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "access/keys.h"
#include "base/clock.h"
#include "gateway/access_log.h"
#include "gateway/completion.h"
#include "gateway/cors.h"
#include "gateway/endpoints.h"
#include "gateway/exchange.h"
#include "gateway/gateway_metrics.h"
#include "gateway/io_threads.h"

namespace sluice {

class Router {
 public:
  struct Surroundings {
    Completion::Environment completion;
    Endpoints& endpoints;
    const KeyRing& keys;
    const Cors& cors;
    const std::vector<std::string>& trusted_clients;  // subjects of certificates
    AccessLog& access_log;
    std::function<ReplicaLinks&(const IoThread&)> links_of;
  };

  // All references outlive it.
  explicit Router(Surroundings around) : around_(std::move(around)) {}

  [[nodiscard]] Task<void> answer(HttpRequest& request, Responder& responder, IoThread& io);

  // Whether the request can need its body: nobody fills the memory without a key.
  [[nodiscard]] bool wants_body(const HttpRequest& request) const noexcept;

  // From now on /readyz says so, and only what tells of the process is answered. False: it was so
  // already.
  bool drain() noexcept { return !draining_.exchange(true); }

 private:
  struct Match {
    Route route = Route::kOther;
    std::string_view argument;  // of a pattern
    const char* method = "";    // the one that it takes
  };
  [[nodiscard]] static Match match(std::string_view path) noexcept;
  [[nodiscard]] bool is_trusted(const HttpRequest& request) const noexcept;
  [[nodiscard]] Task<void> admit(Exchange& exchange, const Match& match);
  [[nodiscard]] Task<void> dispatch(Exchange& exchange, const Match& match);
  [[nodiscard]] Task<void> complete(Exchange& exchange, ApiResult<OpenAiRequest> parsed,
                                    RequestTimes times);
  void close_record(Exchange& exchange, Route route) noexcept;

  Surroundings around_;
  std::atomic<std::uint32_t> running_ = 0;
  std::atomic<bool> draining_ = false;
};

}  // namespace sluice
