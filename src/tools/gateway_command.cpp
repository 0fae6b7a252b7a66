#include "tools/gateway_command.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "gateway/gateway.h"
#include "tools/gateway_options.h"
#include "tools/server_process.h"
#include "tools/stop_signals.h"

namespace sluice {
int run_gateway(int argc, char** argv) {
  auto command = parse_gateway_options(argc, argv);
  if (!command) return end_with("gateway", command.error());
  if (!*command) return EXIT_SUCCESS;

  std::atomic<Gateway*> running = nullptr;
  std::promise<void> stopping;
  std::optional<StopSignals> signals(std::in_place, [&](int nth) {
    Gateway* const gateway = running;
    if (gateway == nullptr || nth > 2) std::_Exit(EXIT_FAILURE);
    if (nth > 1) return gateway->end_grace();
    gateway->begin_drain();
    stopping.set_value();
  });
  const auto log = begin_server_process((*command)->log_level);

  auto started = Gateway::start(std::move((*command)->gateway), {});
  if (!started) return end_with("gateway", started.error());
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
