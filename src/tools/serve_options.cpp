#include "tools/serve_options.h"

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/flags.h"
#include "tools/gateway_options.h"
#include "tools/server_command_line.h"

namespace sluice {
namespace {

constexpr std::uint64_t kShortestHandshakeMs = 100;
constexpr std::uint32_t kScriptedDefault = 65'536;  // of what the real engine must keep small

void add_transport(CLI::App& app, TransportOptions& transport) {
  add_number(app, "max-ping-strikes", transport.max_ping_strikes,
             "Pings that come too early before a connection is closed; 0: any number", "pings", 0U,
             1000U);
  add_number(app, "max-metadata-bytes", transport.max_metadata_bytes, "Metadata of one call",
             "bytes", 1024U, 1U << 20);
  add_number(app, "http2-frame-bytes", transport.http2_frame_bytes, "A frame that clients may send",
             "bytes", 16'384U, 16'777'215U);
  add_number(app, "http2-window-bytes", transport.http2_window_bytes,
             "What clients may send ahead on one call", "bytes", 1024U, 64U << 20);
  add_boolean(app, "http2-bdp-probe", transport.http2_bdp_probe,
              "Let that window grow with the connection's speed");
  add_ms(app, "handshake-timeout-ms", transport.handshake_timeout,
         "A new connection must be set up within this", kShortestHandshakeMs);
}

void add_replica(ServerCommandLine& line, const std::string& command, ReplicaOptions& replica) {
  const std::vector<std::pair<std::string, Switch>> switches{
      {"off", Switch::kOff}, {"on", Switch::kOn}, {"auto", Switch::kAuto}};
  if (command == "up") replica.listen_flag = "--grpc-listen";
  line.add_address(replica.listen_flag, replica.listen, "gRPC; port 0: any free one");
  line.add_server(replica.metrics_listen, replica.tls, replica.api_keys);
  CLI::App& app = line.app();
  add_choice(app, "reflection", replica.reflection, switches,
             "gRPC reflection; auto: on, unless there are keys");
  add_choice(app, "channelz", replica.channelz, switches,
             "gRPC channelz; auto: on, unless there are keys");
}

// Replica and gateway of one process have one certificate, the same keys and one address for
// metrics; the gateway's own are at its /metrics.
void share_with_gateway(const ReplicaOptions& replica, GatewayOptions& gateway) {
  gateway.tls = replica.tls;
  gateway.api_keys = replica.api_keys;
  gateway.metrics_listen = "off";
}

// One process has one grace, unless two are asked for.
void share_grace(CLI::App& app, Limits& replica, GatewayLimits& gateway) {
  CLI::Option* const grpc = app.get_option("--drain-grace-ms");
  CLI::Option* const http = app.get_option("--http-drain-grace-ms");
  if (http->count() > 0 && grpc->count() == 0) {
    replica.drain_grace = gateway.http_drain_grace;
    grpc->default_str(std::to_string(replica.drain_grace.count()));
  } else if (grpc->count() > 0 && http->count() == 0) {
    gateway.http_drain_grace = replica.drain_grace;
    http->default_str(std::to_string(gateway.http_drain_grace.count()));
  }
}

void add_engine(CLI::App& app, EngineOptions& engine) {
  add_choice(app, "engine", engine.kind,
             {{"llama", EngineKind::kLlama}, {"scripted", EngineKind::kScripted}},
             "The real engine, or one that plays a script");
  app.add_option("--model", engine.model, "The model to serve")
      ->type_name("FILE.gguf")
      ->envname("SLUICE_MODEL");
  app.add_option("--context-tokens", engine.context_tokens,
                 "Prompt and answer of one sequence together; 0: the engine's default")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 24));
  app.add_option("--threads", engine.threads, "Of the real engine; 0: as many as the machine has")
      ->capture_default_str()
      ->check(CLI::Range(0, 512));  // GGML_MAX_N_THREADS
  add_choice(app, "kv-type", engine.kv_format, {{"f16", KvFormat::kF16}, {"q8_0", KvFormat::kQ8_0}},
             "How the KV cache is kept");
  add_choice(
      app, "weights", engine.weights,
      {{"file", Weights::kFile},
       {"auto", Weights::kAuto},
       {"q8_0", Weights::kQ8_0},
       {"q4_0", Weights::kQ4_0}},
      "The type that the model's weights are kept in; auto: a faster one, where it is as good");
  app.add_option("--step-ms", engine.step_ms,
                 "Scripted: one token for each sequence each so often; 0: as fast as they are read")
      ->capture_default_str();
  app.add_option("--script", engine.script, "Scripted: what every sequence says")
      ->type_name("FILE");
}

// The scripted engine stands for a very large machine, unless a flag or the file says otherwise.
void widen_for_scripted(CLI::App& app, Limits& limits) {
  const auto widen = [&app](const char* flag, std::uint32_t& field) {
    CLI::Option* option = app.get_option(flag);
    if (option->count() > 0) return;
    field = kScriptedDefault;
    option->default_str(std::to_string(field));
  };
  widen("--max-sequences", limits.max_sequences);
  widen("--max-step-tokens", limits.max_step_tokens);
  widen("--max-queued-requests", limits.max_queued_requests);
}

}  // namespace

Result<std::optional<ServeOptions>> parse_serve_options(const std::string& command, int argc,
                                                        char** argv) {
  ServeOptions options;
  ServerCommandLine line(command, command == "up"
                                      ? "Serves a model over gRPC, and OpenAI's API over HTTP."
                                      : "Serves a model over gRPC.");
  CLI::App& app = line.app();
  add_replica(line, command, options.replica);
  if (command == "up") add_gateway_flags(line, options.gateway.emplace());
  add_engine(app, options.engine);
  line.add_process(options.log_level);
  add_boolean(app, "warm-up", options.warm_up, "Say SERVING only when a first token came out");
  add_limits(app, options.replica.limits);
  add_transport(app, options.replica.transport);

  const auto parsed = line.parse(argc, argv);
  if (!parsed) return tl::unexpected(parsed.error());
  if (!*parsed) return std::nullopt;
  if (options.engine.kind == EngineKind::kScripted) widen_for_scripted(app, options.replica.limits);
  if (options.gateway) {
    share_with_gateway(options.replica, *options.gateway);
    share_grace(app, options.replica.limits, options.gateway->limits);
  }
  if (line.print_if_asked()) return std::nullopt;
  if (options.gateway) {
    if (auto checked = check_who_may_call(*options.gateway); !checked)
      return tl::unexpected(std::move(checked.error()));
  }
  return options;
}

}  // namespace sluice
