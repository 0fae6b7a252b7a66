#include "tools/up.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "base/concat.h"
#include "gateway/gateway.h"
#include "replica/replica.h"
#include "tools/replica_command.h"
#include "tools/serve_options.h"
#include "tools/what_to_try.h"

namespace sluice {
namespace {

constexpr std::chrono::seconds kLocalReplica{10};

WhatServes what_serves(const ReplicaOptions& options) {
  const bool open = options.reflection == Switch::kAuto && options.api_keys.empty();
  return {.tls = options.tls,
          .api_keys = options.api_keys,
          .reflection = options.reflection == Switch::kOn || open};
}

}  // namespace

int run_up(int argc, char** argv) {
  std::unique_ptr<Gateway> gateway;
  std::atomic<Gateway*> serving = nullptr;
  WhatServes serves;
  Front front;
  front.open = [&](ServeOptions& options, Replica& replica) -> Result<std::string> {
    auto started = Gateway::start(std::move(*options.gateway),
                                  {replica.in_process_channel(), replica.own_key()});
    if (!started) return tl::unexpected(std::move(started.error()));
    gateway = std::move(*started);
    serving = gateway.get();
    serves = what_serves(options.replica);
    if (!gateway->wait_ready(kLocalReplica))
      return fail(Code::kInternal, "the replica in this process does not answer its gateway");
    return concat("http=", gateway->address(), ' ');
  };
  front.when_ready = [&](const Replica& replica) {
    serves.http = gateway->address();
    serves.grpc = replica.address();
    serves.metrics = replica.metrics_address();
    std::fputs(what_to_try(serves).c_str(), stdout);
  };
  front.drain = [&](bool at_once) {
    Gateway* const running = serving;
    if (running == nullptr) return;
    at_once ? running->end_grace() : running->begin_drain();
  };
  front.close = [&] {
    if (!gateway) return;
    gateway->begin_drain();
    static_cast<void>(gateway->wait_drained());
    gateway.reset();
  };
  return serve("up", argc, argv, front);
}

}  // namespace sluice
