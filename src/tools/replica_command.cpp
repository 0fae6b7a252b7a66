#include "tools/replica_command.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "replica/grpc_log.h"
#include "replica/process.h"
#include "replica/replica.h"
#include "tools/make_engine.h"
#include "tools/serve_options.h"
#include "tools/stop_signals.h"

namespace sluice {
namespace {

int failed(const std::string& command, const Error& error) {
  std::fprintf(stderr, "sluice %s: %s\n", command.c_str(), error.message.c_str());
  return EXIT_FAILURE;
}

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
  if (!options) return failed(command, options.error());
  if (!*options) return EXIT_SUCCESS;

  std::signal(SIGPIPE, SIG_IGN);
  std::atomic<Replica*> running = nullptr;
  std::optional<StopSignals> signals(std::in_place, [&](int nth) {
    Replica* const replica = running;
    if (replica == nullptr || nth > 2) std::_Exit(EXIT_FAILURE);
    if (front.drain) front.drain(nth > 1);
    replica->begin_drain(nth == 1 ? std::nullopt : std::optional(std::chrono::milliseconds{0}));
  });
  set_log_level((*options)->log_level);
  route_grpc_log();
  raise_descriptor_limit();
  check_listen_backlog();

  SystemClock clock;
  std::unique_ptr<Replica> replica;
  const Result<void> served = serve(**options, clock, running, replica, front);
  signals.reset();  // before the replica that it drains
  if (front.close) front.close();
  replica.reset();
  return served ? EXIT_SUCCESS : failed(command, served.error());
}

int run_replica(int argc, char** argv) { return serve("replica", argc, argv, {}); }

}  // namespace sluice
