#include "tools/serve_options.h"

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/command_line.h"
#include "tools/flags.h"
#include "tools/gateway_options.h"

namespace sluice {
namespace {

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
         "A new connection must be set up within this");
}

void add_server(CLI::App& app, const std::string& command, ReplicaOptions& replica) {
  const std::vector<std::pair<std::string, Switch>> switches{
      {"off", Switch::kOff}, {"on", Switch::kOn}, {"auto", Switch::kAuto}};
  if (command == "up") replica.listen_flag = "--grpc-listen";
  app.add_option(replica.listen_flag, replica.listen, "gRPC; port 0: any free one")
      ->capture_default_str()
      ->type_name("HOST:PORT");
  app.add_option("--metrics-listen", replica.metrics_listen,
                 "Prometheus metrics over HTTP; off: none")
      ->capture_default_str()
      ->type_name("HOST:PORT");
  app.add_option("--tls-cert", replica.tls.certificate,
                 "Certificate chain, PEM; read again when it changes")
      ->type_name("FILE");
  app.add_option("--tls-key", replica.tls.key, "Its private key, PEM")->type_name("FILE");
  app.add_option("--tls-client-ca", replica.tls.client_ca,
                 "Clients must show a certificate of this authority")
      ->type_name("FILE");
  app.add_option("--api-keys", replica.api_keys,
                 "Keys that may call (sluice key); read again when it changes")
      ->type_name("FILE");
  add_choice(app, "reflection", replica.reflection, switches,
             "gRPC reflection; auto: on, unless there are keys");
  add_choice(app, "channelz", replica.channelz, switches,
             "gRPC channelz; auto: on, unless there are keys");
}

void add_gateway(CLI::App& app, GatewayOptions& gateway) {
  app.add_option("--listen", gateway.listen, "HTTP; port 0: any free one")
      ->capture_default_str()
      ->type_name("HOST:PORT");
  add_gateway_flags(app, gateway);
}

// Replica and gateway of one process have one certificate, the same keys and one address for
// metrics; the gateway's own are at its /metrics.
void share_with_gateway(const ReplicaOptions& replica, GatewayOptions& gateway) {
  gateway.tls_certificate = replica.tls.certificate;
  gateway.tls_key = replica.tls.key;
  gateway.tls_client_ca = replica.tls.client_ca;
  gateway.api_keys = replica.api_keys;
  gateway.metrics_listen = "off";
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
      ->check(CLI::Range(0, 1024));
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
  std::string log_level = "info";
  bool wants_config = false;
  CLI::App app(command == "up" ? "Serves a model over gRPC, and OpenAI's API over HTTP."
                               : "Serves a model over gRPC.",
               "sluice " + command);
  app.option_defaults()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);  // of a flag given twice
  add_server(app, command, options.replica);
  if (command == "up") add_gateway(app, options.gateway.emplace());
  add_engine(app, options.engine);
  app.add_option("--log-level", log_level, "debug, info, warning, error or off")
      ->capture_default_str();
  add_boolean(app, "warm-up", options.warm_up, "Say SERVING only when a first token came out");
  app.add_flag("--print-config", wants_config, "Print the effective configuration and end")
      ->configurable(false);
  add_limits(app, options.replica.limits);
  add_transport(app, options.replica.transport);

  const auto parsed = parse_command_line(app, argc, argv);
  if (!parsed) return tl::unexpected(parsed.error());
  if (!*parsed) return std::nullopt;
  auto level = parse_log_level(log_level);
  if (!level) return tl::unexpected(std::move(level.error()));
  options.log_level = *level;
  if (options.engine.kind == EngineKind::kScripted) widen_for_scripted(app, options.replica.limits);
  if (options.gateway) share_with_gateway(options.replica, *options.gateway);
  if (wants_config) {
    print_config(app);
    return std::nullopt;
  }
  if (options.gateway) {
    if (auto checked = check_who_may_call(*options.gateway); !checked)
      return tl::unexpected(std::move(checked.error()));
  }
  return options;
}

}  // namespace sluice
