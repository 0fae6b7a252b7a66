#include "tools/gateway_options.h"

#include <CLI/CLI.hpp>
#include <string>

#include "base/concat.h"
#include "base/listen_address.h"
#include "tools/flags.h"
#include "tools/server_command_line.h"

namespace sluice {

void add_gateway_flags(ServerCommandLine& line, GatewayOptions& options) {
  CLI::App& app = line.app();
  line.add_address("--listen", options.listen, "HTTP; port 0: any free one");
  add_list(app, "replica", options.replicas, "HOST:PORT[;name=NAME][;retain=none]",
           "A replica, or a name for several; may be given many times");
  add_choice(app, "policy", options.policy,
             {{"affinity", PoolPolicy::kAffinity},
              {"least-load", PoolPolicy::kLeastLoad},
              {"round-robin", PoolPolicy::kRoundRobin}},
             "Which replica takes a request that names none");
  line.add_file("--replica-key", options.replica_key, "Holds this gateway's key at its replicas");
  line.add_file("--replica-tls-ca", options.replica_tls.authority,
                "Replicas must show a certificate of this authority; turns TLS to them on");
  line.add_file("--replica-tls-cert", options.replica_tls.certificate,
                "This gateway's certificate for them, PEM");
  line.add_file("--replica-tls-key", options.replica_tls.key, "Its private key, PEM");
  app.add_option("--replica-tls-name", options.replica_tls.server_name,
                 "The name on their certificates, where it is not the address's")
      ->type_name("NAME");
  app.add_flag("--insecure-open", options.insecure_open,
               "Serve on other than loopback addresses without keys");
  add_list(app, "trusted-client", options.trusted_clients, "SUBJECT",
           "Holders of this certificate may name the machine that takes a request");
  add_list(
      app, "cors-origin", options.cors_origins, "ORIGIN",
      "Pages of this origin may call; *: of any (the default with keys; without: this machine's)");
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
  if (!options.api_keys.empty() || !options.tls.client_ca.empty() || options.insecure_open ||
      is_loopback(address->host)) {
    return {};
  }
  return invalid(concat("--listen ", options.listen,
                        " would let everybody in who can reach it: give --api-keys FILE (sluice "
                        "key makes one), or listen on loopback, or say --insecure-open"));
}

Result<std::optional<GatewayCommand>> parse_gateway_options(int argc, char** argv) {
  GatewayCommand command;
  ServerCommandLine line("gateway", "Serves OpenAI's API in front of replicas.");
  line.add_server(command.gateway.metrics_listen, command.gateway.tls, command.gateway.api_keys);
  add_gateway_flags(line, command.gateway);
  line.add_process(command.log_level);
  const auto parsed = line.parse(argc, argv);
  if (!parsed) return tl::unexpected(parsed.error());
  if (!*parsed || line.print_if_asked()) return std::nullopt;
  if (command.gateway.replicas.empty())
    return invalid("no --replica HOST:PORT is given: a gateway has nothing of its own to serve");
  if (auto checked = check_who_may_call(command.gateway); !checked)
    return tl::unexpected(std::move(checked.error()));
  return command;
}

}  // namespace sluice
