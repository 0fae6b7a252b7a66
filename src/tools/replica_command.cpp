#include "tools/replica_command.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "replica/replica.h"
#include "tools/make_engine.h"
#include "tools/serve_options.h"
#include "tools/server_process.h"
#include "tools/stop_signals.h"

namespace sluice {
namespace {

// Starts, says so, and serves until the drain is over.
Result<void> serve(ServeOptions& options, Clock& clock, std::atomic<Replica*>& running,
                   std::unique_ptr<Replica>& replica, const Front& front) {
  auto engine = make_engine(options.engine, options.replica.limits, clock);
  if (!engine) return tl::unexpected(std::move(engine.error()));
  const EngineInfo info = (*engine)->info();
  auto started = Replica::start(std::move(*engine), options.replica);
  if (!started) return tl::unexpected(std::move(started.error()));
  replica = std::move(*started);
  running = replica.get();
  if (auto warm = replica->warm_up(options.warm_up); !warm && !replica->draining()) return warm;
  std::string in_front;
  if (front.open) {
    auto opened = front.open(options, *replica);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    in_front = std::move(*opened);
  }
  if (!replica->draining()) {
    std::printf("ready %sgrpc=%s metrics=%s engine=%s model=%s\n", in_front.c_str(),
                replica->address().c_str(), replica->metrics_address().c_str(), info.kind.c_str(),
                info.model.c_str());
    if (front.when_ready) front.when_ready(*replica);
    std::fflush(stdout);
  }
  replica->wait();
  return {};
}

}  // namespace

int serve(const std::string& command, int argc, char** argv, const Front& front) {
  auto options = parse_serve_options(command, argc, argv);
  if (!options) return end_with(command, options.error());
  if (!*options) return EXIT_SUCCESS;

  std::atomic<Replica*> running = nullptr;
  std::optional<StopSignals> signals(std::in_place, [&](int nth) {
    Replica* const replica = running;
    if (replica == nullptr || nth > 2) std::_Exit(EXIT_FAILURE);
    if (front.drain) front.drain(nth > 1);
    replica->begin_drain(nth == 1 ? std::nullopt : std::optional(std::chrono::milliseconds{0}));
  });
  const auto log = begin_server_process((*options)->log_level);

  SystemClock clock;
  std::unique_ptr<Replica> replica;
  const Result<void> served = serve(**options, clock, running, replica, front);
  signals.reset();  // before the replica that it drains
  if (front.close) front.close();
  replica.reset();
  return served ? EXIT_SUCCESS : end_with(command, served.error());
}

int run_replica(int argc, char** argv) { return serve("replica", argc, argv, {}); }

}  // namespace sluice
