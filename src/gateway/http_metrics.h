// HttpMetrics: what the HTTP server counts, all its series made at start. Labels are of a fixed
// set. Thread: any.
#pragma once

#include <map>

#include "base/metrics.h"

namespace sluice {

enum class HttpTimeout { kHandshake, kHeader, kBody, kIdle, kWrite };
enum class ConnectionRefusal { kLimit, kDescriptors, kTls };

class HttpMetrics {
 public:
  explicit HttpMetrics(Metrics& metrics);

  void timed_out(HttpTimeout kind) noexcept;
  void connection_refused(ConnectionRefusal why) noexcept;
  // An answer that the session gave by itself.
  void request_refused(int status) noexcept;

  Gauge connections;
  Gauge connections_limit;
  Counter accepted;
  Counter requests;
  Counter clients_gone;  // while their request was being answered
  Counter received_bytes;
  Counter sent_bytes;

 private:
  std::map<HttpTimeout, Counter> timeouts_;
  std::map<ConnectionRefusal, Counter> refused_;
  std::map<int, Counter> statuses_;
};

}  // namespace sluice
