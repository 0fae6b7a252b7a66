#include "replica/replica.h"

#include <grpc/grpc.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <thread>
#include <utility>
#include <vector>

#include "access/keys.h"
#include "base/clock.h"
#include "base/concat.h"
#include "base/gate.h"
#include "base/listen_address.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/process.h"
#include "engine/engine.h"
#include "inference.grpc.pb.h"
#include "replica/context.h"
#include "replica/embed_queue.h"
#include "replica/grpc_listener.h"
#include "replica/health.h"
#include "replica/keeper.h"
#include "replica/preparer.h"
#include "replica/reflection.h"
#include "replica/replica_metrics.h"
#include "replica/self_proof.h"
#include "replica/service.h"
#include "scheduler/admission.h"
#include "scheduler/engine_loop.h"
#include "stream/delivery.h"
#include "stream/doorbell.h"

namespace sluice {
namespace {

// A server that stops waits this long for calls that are not requests (Watch, Attach without
// requests, reflection).
constexpr std::chrono::milliseconds kOtherCalls{200};

ServedModel served(const EngineInfo& info) {
  return {info.model, info.context_tokens, info.vocabulary, info.longest_piece};
}

Result<std::unique_ptr<ServerTls>> load_tls(const TlsFiles& files) {
  if (!files.enabled()) return std::unique_ptr<ServerTls>();
  return ServerTls::load(files);
}

// Generates one token, as a client would.
Result<void> generate_a_token(const std::shared_ptr<grpc::Channel>& channel,
                              const std::string& key) {
  inference::GenerateRequest request;
  request.set_model("local");
  request.set_max_tokens(1);
  request.set_temperature(0);
  request.set_ignore_eos(true);
  grpc::ClientContext call;
  call.AddMetadata("authorization", concat("Bearer ", key));
  const auto stub = inference::LLM::NewStub(channel);
  const auto stream = stub->Generate(&call, request);
  inference::GenerateResponse response;
  while (stream->Read(&response)) continue;
  const grpc::Status status = stream->Finish();
  if (!status.ok())
    return fail(Code::kInternal, concat("the warm-up generation failed: ", status.error_message()));
  if (response.completion_tokens() == 0)
    return fail(Code::kInternal, "the warm-up generation made no token");
  return {};
}

}  // namespace

// Everything, in the order in which it is made; what is below may use what is above.
class Replica::Parts {
 public:
  Parts(std::unique_ptr<Engine> given_engine, ReplicaOptions given_options, ListenAddress address,
        std::unique_ptr<KeyRing> given_keys, std::unique_ptr<ServerTls> given_tls)
      : options(std::move(given_options)),
        listen(std::move(address)),
        engine(std::move(given_engine)),
        keys(std::move(given_keys)),
        tls(std::move(given_tls)) {}

  ~Parts() {
    keeper.reset();
    if (listener) listener->stop();
    if (server) server->Shutdown(std::chrono::system_clock::now() + kOtherCalls);
    loop.request_stop();
    if (engine_thread.joinable()) engine_thread.join();
    server.reset();
  }

  [[nodiscard]] Result<void> listen_and_serve();
  [[nodiscard]] bool wanted(Switch given) const noexcept {
    return given == Switch::kOn || (given == Switch::kAuto && !keys->required());
  }

  const ReplicaOptions options;
  ListenAddress listen;
  std::string metrics_address;
  const std::unique_ptr<Engine> engine;
  const std::unique_ptr<KeyRing> keys;
  const std::unique_ptr<ServerTls> tls;  // null without TLS

  SystemClock clock;
  Metrics metrics;
  ReplicaMetrics replica_metrics{metrics};
  ProcessMetrics process{metrics,
                         {{"version", SLUICE_VERSION},
                          {"engine", engine->info().kind},
                          {"model", engine->info().model},
                          {"weights", engine->info().weights}}};
  Doorbell doorbell{clock};
  Admission admission{options.limits, clock, doorbell, metrics};
  Delivery delivery;
  EngineLoop loop{*engine, admission, doorbell, delivery, clock, metrics, options.limits};
  Preparer preparer{*engine, admission, clock, served(engine->info()), replica_metrics};
  EmbedQueue embed_queue{*engine, clock, options.limits, served(engine->info()), replica_metrics};
  Gate calls;

  std::unique_ptr<Keeper> keeper;
  const ReplicaContext context{*engine,
                               admission,
                               preparer,
                               embed_queue,
                               clock,
                               options.limits,
                               *keys,
                               replica_metrics,
                               calls,
                               served(engine->info()),
                               [this](auto grace) {
                                 keeper->begin_drain(grace.value_or(options.limits.drain_grace));
                                 return static_cast<std::uint32_t>(calls.count());
                               }};
  Services services{context};
  HealthService health{
      {"inference.LLM", "inference.Replica"}, options.limits.max_watches, replica_metrics};
  std::unique_ptr<ReflectionService> reflection;
  std::shared_ptr<grpc::ServerCredentials> credentials;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<GrpcListener> listener;  // stopped before the server
  std::thread engine_thread;
};

Result<void> Replica::Parts::listen_and_serve() {
  auto opened = GrpcListener::open(listen, options.listen_flag, options.limits, metrics);
  if (!opened) return tl::unexpected(std::move(opened.error()));
  std::vector<std::string> names{"grpc.health.v1.Health", "inference.LLM", "inference.Replica"};
  // gRPC makes this a matter of the process: each server that is built after it has channelz.
  if (wanted(options.channelz)) {
    grpc::channelz::experimental::InitChannelzService();
    names.emplace_back("grpc.channelz.v1.Channelz");
  }
  grpc::ServerBuilder builder;
  set_server_options(options.limits, options.transport, builder);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, wanted(options.channelz) ? 1 : 0);
  builder.RegisterService(&services.llm());
  builder.RegisterService(&services.replica());
  builder.RegisterService(&health.service());
  if (wanted(options.reflection)) {
    names.emplace_back("grpc.reflection.v1.ServerReflection");
    names.emplace_back("grpc.reflection.v1alpha.ServerReflection");
    reflection = std::make_unique<ReflectionService>(std::move(names));
    builder.RegisterService(&reflection->v1());
    builder.RegisterService(&reflection->v1alpha());
  }
  credentials = tls ? tls->credentials() : grpc::InsecureServerCredentials();
  using FromWhat = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  auto acceptor =
      builder.experimental().AddExternalConnectionAcceptor(FromWhat::FROM_FD, credentials);
  server = builder.BuildAndStart();
  if (!server) {
    return fail(Code::kUnavailable,
                concat("can't serve gRPC on ", options.listen, " (", options.listen_flag, ")"));
  }
  listener = std::move(*opened);
  listener->serve(std::move(acceptor));
  return {};
}

Replica::Replica(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Replica::~Replica() = default;

Result<std::unique_ptr<Replica>> Replica::start(std::unique_ptr<Engine> engine,
                                                ReplicaOptions options) {
  auto address = parse_listen_address(options.listen, options.listen_flag);
  if (!address) return tl::unexpected(std::move(address.error()));
  auto keys = KeyRing::load(options.api_keys);
  if (!keys) return tl::unexpected(std::move(keys.error()));
  auto tls = load_tls(options.tls);
  if (!tls) return tl::unexpected(std::move(tls.error()));
  if (auto proved =
          prove_server_options(options.limits, options.transport, tls->get(), &set_server_options);
      !proved) {
    return tl::unexpected(std::move(proved.error()));
  }

  auto made = std::make_unique<Parts>(std::move(engine), std::move(options), std::move(*address),
                                      std::move(*keys), std::move(*tls));
  Parts& parts = *made;
  warn_of_limits_not_held(*parts.keys);
  if (!parts.keys->required() && parts.options.tls.client_ca.empty() &&
      !is_loopback(parts.listen.host)) {
    log_warning("replica", concat(parts.options.listen_flag, ' ', parts.options.listen,
                                  " lets everybody in who can reach it: --api-keys FILE or "
                                  "--tls-client-ca FILE keeps others out"));
  }
  auto metrics_address = serve_metrics(parts.metrics, parts.options.metrics_listen);
  if (!metrics_address) return tl::unexpected(std::move(metrics_address.error()));
  parts.metrics_address = std::move(*metrics_address);
  parts.engine_thread = std::thread([&parts]() noexcept { parts.loop.run(); });
  parts.keeper = std::make_unique<Keeper>(
      Keeper::Charges{parts.options.limits, parts.clock, *parts.keys, parts.tls.get(), parts.health,
                      parts.admission, parts.loop, parts.doorbell, parts.process, parts.calls,
                      [&parts] { parts.services.cut_stuck_calls(); }});
  if (auto served = parts.listen_and_serve(); !served)
    return tl::unexpected(std::move(served.error()));
  return std::unique_ptr<Replica>(new Replica(std::move(made)));
}

Result<void> Replica::warm_up(bool with_token) {
  if (with_token) {
    if (auto made = generate_a_token(in_process_channel(), own_key()); !made) return made;
  }
  parts_->keeper->set_warm();
  return {};
}

std::string Replica::address() const { return parts_->listen.text(); }
std::string Replica::metrics_address() const { return parts_->metrics_address; }

std::uint32_t Replica::begin_drain(std::optional<std::chrono::milliseconds> grace) noexcept {
  return parts_->context.start_drain(grace);
}

bool Replica::draining() const noexcept { return parts_->keeper->draining(); }
void Replica::wait() noexcept { parts_->keeper->wait_drained(); }
const std::string& Replica::own_key() const noexcept { return parts_->keys->own_key(); }

std::shared_ptr<grpc::Channel> Replica::in_process_channel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return parts_->server->InProcessChannel(arguments);
}

}  // namespace sluice
