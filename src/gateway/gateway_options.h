// GatewayOptions: what a gateway is told: where it listens, who may call, which replicas it has,
// and every bound (GatewayLimits). Thread: any (values).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tls_files.h"
#include "gateway/gateway_limits.h"
#include "gateway/replica_pool.h"

namespace sluice {

struct GatewayOptions {
  std::string listen = "127.0.0.1:8080";
  std::string metrics_listen = "127.0.0.1:9090";  // "off": none
  TlsFiles tls;

  std::string api_keys;        // file; empty: nobody needs a key
  bool insecure_open = false;  // without keys on other than loopback addresses, too
  // Subjects of client certificates whose holders may name the machine that takes a request, as a
  // trusted key's may.
  std::vector<std::string> trusted_clients;
  std::vector<std::string> cors_origins;  // of pages that may call: see Cors

  std::vector<std::string> replicas;  // as PoolOptions::replicas
  PoolPolicy policy = PoolPolicy::kAffinity;
  std::string replica_key;  // file with this gateway's key at its replicas; empty: none
  ReplicaTls replica_tls;

  std::string access_log = "stderr";  // or "stdout", a file, "off"
  std::uint32_t access_log_bytes = 1 << 20;
  GatewayLimits limits;
};

}  // namespace sluice
