// HttpServer: accepts clients' connections, hands them to the I/O threads in turn, and ends them.
// In a drain it closes idle connections at once and lets running answers finish; new connections
// are still accepted, for one request each (the handler says no), until the last answer is out and
// --http-drain-notice-ms have passed. Bounded by --max-connections (beyond it a new one is closed
// at once) and the process's file descriptors (without one it pauses); a drain by
// --http-drain-grace-ms: then what still runs is told to end, and a second later cut. Thread: any
// but the I/O threads.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "base/metrics.h"
#include "gateway/gateway_limits.h"
#include "gateway/http_handler.h"
#include "gateway/io_threads.h"
#include "gateway/tls_context.h"

namespace sluice {

struct HttpServerOptions {
  std::string listen;  // HOST:PORT; port 0: any free one
  TlsFiles tls;
  HttpRules rules;
};

class HttpServer {
 public:
  // Listens on every address of the host. `threads` outlive this. Errors name the flag.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options,
                                                                 const GatewayLimits& limits,
                                                                 Metrics& metrics,
                                                                 IoThreads& threads,
                                                                 HttpHandler handler);
  // Cuts what is left, and waits for the handlers to end.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // HOST:PORT, with the port that it has.
  [[nodiscard]] std::string address() const;

  // Begins a drain; returns at once.
  void drain();
  // After drain(): waits for its end. False: the grace did not last for all answers.
  [[nodiscard]] bool wait_drained();
  // The grace is over now.
  void end_grace();

 private:
  class Core;
  explicit HttpServer(std::unique_ptr<Core> core) noexcept;
  std::unique_ptr<Core> core_;
};

}  // namespace sluice
