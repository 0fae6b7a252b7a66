#include "tools/gateway_command.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.h"
#include "gateway/gateway.h"
#include "replica/grpc_log.h"
#include "replica/process.h"
#include "tools/gateway_options.h"
#include "tools/stop_signals.h"

namespace sluice {
namespace {

int failed(const Error& error) {
  std::fprintf(stderr, "sluice gateway: %s\n", error.message.c_str());
  return EXIT_FAILURE;
}

}  // namespace

int run_gateway(int argc, char** argv) {
  auto command = parse_gateway_options(argc, argv);
  if (!command) return failed(command.error());
  if (!*command) return EXIT_SUCCESS;

  std::signal(SIGPIPE, SIG_IGN);
  std::atomic<Gateway*> running = nullptr;
  std::promise<void> stopping;
  std::optional<StopSignals> signals(std::in_place, [&](int nth) {
    Gateway* const gateway = running;
    if (gateway == nullptr || nth > 2) std::_Exit(EXIT_FAILURE);
    if (nth > 1) return gateway->cut();
    gateway->begin_drain();
    stopping.set_value();
  });
  set_log_level((*command)->log_level);
  route_grpc_log();
  raise_descriptor_limit();
  check_listen_backlog();

  auto started = Gateway::start(std::move((*command)->gateway), {});
  if (!started) return failed(started.error());
  const std::unique_ptr<Gateway> gateway = std::move(*started);
  running = gateway.get();
  std::printf("ready http=%s metrics=%s\n", gateway->address().c_str(),
              gateway->metrics_address().c_str());
  std::fflush(stdout);
  stopping.get_future().wait();
  static_cast<void>(gateway->wait_drained());
  signals.reset();  // before the gateway that it drains
  return EXIT_SUCCESS;
}

}  // namespace sluice
