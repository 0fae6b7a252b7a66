#include "tools/gateway_options.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <CLI/CLI.hpp>
#include <string>

#include "base/concat.h"
#include "base/listen_address.h"
#include "tools/command_line.h"
#include "tools/flags.h"

namespace sluice {
namespace {

void add_file(CLI::App& app, const char* flag, std::string& field, const char* help) {
  app.add_option(flag, field, help)->type_name("FILE");
}

void add_server(CLI::App& app, GatewayOptions& options) {
  app.add_option("--listen", options.listen, "HTTP; port 0: any free one")
      ->capture_default_str()
      ->type_name("HOST:PORT");
  app.add_option("--metrics-listen", options.metrics_listen,
                 "Prometheus metrics over HTTP; off: none")
      ->capture_default_str()
      ->type_name("HOST:PORT");
  add_file(app, "--tls-cert", options.tls_certificate,
           "Certificate chain, PEM; read again when it changes");
  add_file(app, "--tls-key", options.tls_key, "Its private key, PEM");
  add_file(app, "--tls-client-ca", options.tls_client_ca,
           "Clients must show a certificate of this authority");
  add_file(app, "--api-keys", options.api_keys,
           "Keys that may call (sluice key); read again when it changes");
}

bool is_loopback(const std::string& host) noexcept {
  if (host == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace

void add_gateway_flags(CLI::App& app, GatewayOptions& options) {
  add_list(app, "replica", options.replicas, "HOST:PORT[;name=NAME][;retain=none]",
           "A replica, or a name for several; may be given many times");
  add_choice(app, "policy", options.policy,
             {{"affinity", PoolPolicy::kAffinity},
              {"least-load", PoolPolicy::kLeastLoad},
              {"round-robin", PoolPolicy::kRoundRobin}},
             "Which replica takes a request that names none");
  add_file(app, "--replica-key", options.replica_key, "Holds this gateway's key at its replicas");
  add_file(app, "--replica-tls-ca", options.replica_tls.authority,
           "Replicas must show a certificate of this authority; turns TLS to them on");
  add_file(app, "--replica-tls-cert", options.replica_tls.certificate,
           "This gateway's certificate for them, PEM");
  add_file(app, "--replica-tls-key", options.replica_tls.key, "Its private key, PEM");
  app.add_option("--replica-tls-name", options.replica_tls.server_name,
                 "The name on their certificates, where it is not the address's")
      ->type_name("NAME");
  app.add_flag("--insecure-open", options.insecure_open,
               "Serve on other than loopback addresses without keys");
  add_list(app, "trusted-client", options.trusted_clients, "SUBJECT",
           "Holders of this certificate may name the machine that takes a request");
  add_list(app, "cors-origin", options.cors_origins, "ORIGIN",
           "Pages of this origin may call; *: of any");
  app.add_option("--access-log", options.access_log, "stderr, stdout, off, or a file")
      ->capture_default_str()
      ->type_name("TARGET");
  add_number(app, "access-log-bytes", options.access_log_bytes,
             "Lines that wait for the access log's target; further ones are lost", "bytes", 4096U);
  add_limits(app, options.limits);
}

Result<void> check_who_may_call(const GatewayOptions& options) {
  const auto address = parse_listen_address(options.listen, "--listen");
  if (!address) return tl::unexpected(address.error());
  if (!options.api_keys.empty() || !options.tls_client_ca.empty() || options.insecure_open ||
      is_loopback(address->host)) {
    return {};
  }
  return invalid(concat("--listen ", options.listen,
                        " would let everybody in who can reach it: give --api-keys FILE (sluice "
                        "key makes one), or listen on loopback, or say --insecure-open"));
}

Result<std::optional<GatewayCommand>> parse_gateway_options(int argc, char** argv) {
  GatewayCommand command;
  std::string log_level = "info";
  bool wants_config = false;
  CLI::App app("Serves OpenAI's API in front of replicas.", "sluice gateway");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_server(app, command.gateway);
  add_gateway_flags(app, command.gateway);
  app.add_option("--log-level", log_level, "debug, info, warning, error or off")
      ->capture_default_str();
  app.add_flag("--print-config", wants_config, "Print the effective configuration and end")
      ->configurable(false);

  const auto parsed = parse_command_line(app, argc, argv);
  if (!parsed) return tl::unexpected(parsed.error());
  if (!*parsed) return std::nullopt;
  auto level = parse_log_level(log_level);
  if (!level) return tl::unexpected(std::move(level.error()));
  command.log_level = *level;
  if (wants_config) {
    print_config(app);
    return std::nullopt;
  }
  if (command.gateway.replicas.empty())
    return invalid("no --replica HOST:PORT is given: a gateway has nothing of its own to serve");
  if (auto checked = check_who_may_call(command.gateway); !checked)
    return tl::unexpected(std::move(checked.error()));
  return command;
}

}  // namespace sluice
