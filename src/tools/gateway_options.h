// What the command line, and the file of --config, of `sluice gateway` say; the flags that only a
// gateway has, for `sluice up`; and what both hold against each other. Thread: main (values).
#pragma once

#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "gateway/gateway_options.h"

namespace sluice {

class ServerCommandLine;

struct GatewayCommand {
  GatewayOptions gateway;
  LogLevel log_level = LogLevel::kInfo;
};

// Address, replicas, policy, access log, CORS, bounds …; not what a replica has as well (metrics,
// TLS, keys).
void add_gateway_flags(ServerCommandLine& line, GatewayOptions& options);

// Without keys, or certificates that clients must show, a gateway serves whoever reaches it: then
// it listens on loopback only, unless --insecure-open says otherwise.
[[nodiscard]] Result<void> check_who_may_call(const GatewayOptions& options);

// argv[0] is "gateway". Nothing: --help or --print-config was answered. Errors name the flag, or
// the file and its line.
[[nodiscard]] Result<std::optional<GatewayCommand>> parse_gateway_options(int argc, char** argv);

}  // namespace sluice
