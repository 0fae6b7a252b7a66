#include "tools/local_server.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/log.h"
#include "engine/engine.h"
#include "replica/replica.h"
#include "tools/make_engine.h"

namespace sluice {
namespace {

// One conversation; the replica's warm-up may be under way beside it.
constexpr std::uint32_t kSlots = 2;

Result<std::unique_ptr<Engine>> load_default_model(const Limits& limits) {
  const char* const file = std::getenv("SLUICE_MODEL");
  if (file == nullptr || *file == '\0') {
    return fail(
        Code::kNotFound,
        "no server answers at 127.0.0.1:50051, and SLUICE_MODEL names no model to serve here; "
        "start one with `sluice replica`, or name it with --server");
  }
  EngineOptions options;
  options.model = file;
  return make_real_engine(options, limits);
}

}  // namespace

LocalServer::LocalServer(std::unique_ptr<Replica> replica) noexcept
    : replica_(std::move(replica)) {}

LocalServer::~LocalServer() = default;

Result<std::unique_ptr<LocalServer>> LocalServer::start() {
  set_log_level(LogLevel::kError);  // it is a part of the chat, and what it logs would stand
                                    // between the lines
  ReplicaOptions options;
  options.limits.max_sequences = kSlots;
  Result<std::unique_ptr<Engine>> engine = load_default_model(options.limits);
  if (!engine) return tl::unexpected(std::move(engine.error()));
  options.listen = "127.0.0.1:0";
  options.metrics_listen = "off";
  Result<std::unique_ptr<Replica>> replica = Replica::start(std::move(*engine), std::move(options));
  if (!replica) return tl::unexpected(std::move(replica.error()));
  if (auto warm = (*replica)->warm_up(); !warm) return tl::unexpected(std::move(warm.error()));
  return std::unique_ptr<LocalServer>(new LocalServer(std::move(*replica)));
}

std::shared_ptr<grpc::Channel> LocalServer::channel() { return replica_->in_process_channel(); }

}  // namespace sluice
