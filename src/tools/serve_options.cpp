#include "tools/serve_options.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <limits>
#include <map>
#include <string_view>
#include <type_traits>

#include "base/concat.h"
#include "contract/limit_table.h"

namespace sluice {
namespace {

constexpr std::uint32_t kScriptedDefault = 65'536;  // of what the real engine must keep small
constexpr std::int64_t kLongestMs = std::int64_t{10} * 365 * 24 * 3600 * 1000;

void add_ms(CLI::App& app, const std::string& flag, std::chrono::milliseconds& field,
            const std::string& help) {
  app.add_option_function<std::int64_t>(
         "--" + flag, [&field](std::int64_t value) { field = std::chrono::milliseconds(value); },
         help)
      ->check(CLI::Range(std::int64_t{0}, kLongestMs))
      ->type_name("MS")
      ->default_str(std::to_string(field.count()));
}

template <typename Number>
void add_number(CLI::App& app, const std::string& flag, Number& field, const std::string& help,
                std::string_view unit, Number least = 1,
                Number most = std::numeric_limits<Number>::max()) {
  CLI::Option* option = app.add_option("--" + flag, field, help)->capture_default_str();
  if (unit == "bytes") option->transform(CLI::AsSizeValue(false));  // 50MiB; 1 MB is 1 MiB
  option->check(CLI::Range(least, most))->type_name(std::string(unit));
}

void add_limits(CLI::App& app, Limits& limits) {
  visit_limits(limits, [&app]<typename Field>(const char* flag, Field& field, const char* unit,
                                              const char* help) {
    if constexpr (std::is_same_v<Field, std::chrono::milliseconds>) {
      add_ms(app, flag, field, help);
    } else if constexpr (std::is_same_v<Field, double>) {
      add_number(app, flag, field, help, unit, 1.0, 1000.0);
    } else {
      add_number(app, flag, field, help, unit);
    }
  });
}

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
  app.add_option("--http2-bdp-probe", transport.http2_bdp_probe,
                 "Let that window grow with the connection's speed")
      ->capture_default_str();
  add_ms(app, "handshake-timeout-ms", transport.handshake_timeout,
         "A new connection must be set up within this");
}

template <typename Enum>
void add_choice(CLI::App& app, const std::string& flag, Enum& field,
                const std::map<std::string, Enum>& names, const std::string& help) {
  std::string known;
  std::string given;
  for (const auto& [name, value] : names) {
    known += (known.empty() ? "" : "|") + name;
    if (value == field) given = name;
  }
  app.add_option_function<std::string>(
         flag, [&field, names](const std::string& name) { field = names.at(name); }, help)
      ->check(CLI::IsMember(names))
      ->type_name(known)
      ->default_str(given);
}

void add_server(CLI::App& app, const std::string& command, ReplicaOptions& replica) {
  const std::map<std::string, Switch> switches{
      {"off", Switch::kOff}, {"on", Switch::kOn}, {"auto", Switch::kAuto}};
  app.add_option(command == "up" ? "--listen,--grpc-listen" : "--listen", replica.listen,
                 "gRPC; port 0: any free one")
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
  add_choice(app, "--reflection", replica.reflection, switches,
             "gRPC reflection; auto: on, unless there are keys");
  add_choice(app, "--channelz", replica.channelz, switches,
             "gRPC channelz; auto: on, unless there are keys");
}

void add_engine(CLI::App& app, EngineOptions& engine) {
  add_choice(app, "--engine", engine.kind,
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
  add_choice(app, "--kv-type", engine.kv_format,
             {{"f16", KvFormat::kF16}, {"q8_0", KvFormat::kQ8_0}}, "How the KV cache is kept");
  add_choice(
      app, "--weights", engine.weights,
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

// CLI11's words for what is wrong with the file name its format, and not the flag or the fault.
std::string in_our_words(const CLI::Error& error) {
  constexpr std::string_view kUnknownKey = "INI was not able to parse ";
  const std::string message = error.what();
  if (message.rfind(kUnknownKey, 0) == 0)
    return concat("--config: no flag is named --", message.substr(kUnknownKey.size()));
  if (dynamic_cast<const CLI::FileError*>(&error) != nullptr) return "--config: " + message;
  return message;
}

}  // namespace

Result<std::optional<ServeOptions>> parse_serve_options(const std::string& command, int argc,
                                                        char** argv) {
  ServeOptions options;
  std::string log_level = "info";
  bool print_config = false;
  CLI::App app("Serves a model over gRPC.", "sluice " + command);
  app.option_defaults()->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);  // of a flag given twice
  app.set_config("--config", "", "A TOML file with flags, without their dashes, as keys");
  app.allow_config_extras(CLI::config_extras_mode::error);
  add_server(app, command, options.replica);
  add_engine(app, options.engine);
  app.add_option("--log-level", log_level, "debug, info, warning, error or off")
      ->capture_default_str();
  app.add_option("--warm-up", options.warm_up, "Say SERVING only when a first token came out")
      ->capture_default_str();
  app.add_flag("--print-config", print_config, "Print the effective configuration and end")
      ->configurable(false);
  add_limits(app, options.replica.limits);
  add_transport(app, options.replica.transport);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return std::nullopt;
  } catch (const CLI::Error& error) {
    return invalid(in_our_words(error));
  }
  auto level = parse_log_level(log_level);
  if (!level) return tl::unexpected(std::move(level.error()));
  options.log_level = *level;
  if (options.engine.kind == EngineKind::kScripted) widen_for_scripted(app, options.replica.limits);
  if (print_config) {
    std::fputs(app.config_to_str(true, true).c_str(), stdout);
    return std::nullopt;
  }
  return options;
}

}  // namespace sluice
