#include "tools/server_command_line.h"

#include <CLI/CLI.hpp>

#include "tools/command_line.h"
#include "tools/flags.h"

namespace sluice {

ServerCommandLine::ServerCommandLine(const std::string& command, const std::string& description)
    : app_(std::make_unique<CLI::App>(description, "sluice " + command)) {
  app_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

ServerCommandLine::~ServerCommandLine() = default;

void ServerCommandLine::add_address(const std::string& flag, std::string& field,
                                    const std::string& help) {
  app_->add_option(flag, field, help)->capture_default_str()->type_name("HOST:PORT");
}

void ServerCommandLine::add_file(const std::string& flag, std::string& field,
                                 const std::string& help) {
  app_->add_option(flag, field, help)->type_name("FILE");
}

void ServerCommandLine::add_server(std::string& metrics_listen, TlsFiles& tls,
                                   std::string& api_keys) {
  add_address("--metrics-listen", metrics_listen, "Prometheus metrics over HTTP; off: none");
  add_file("--tls-cert", tls.certificate, "Certificate chain, PEM; read again when it changes");
  add_file("--tls-key", tls.key, "Its private key, PEM");
  add_file("--tls-client-ca", tls.client_ca, "Clients must show a certificate of this authority");
  add_file("--api-keys", api_keys, "Keys that may call (sluice key); read again when it changes");
}

void ServerCommandLine::add_process(LogLevel& level) {
  add_choice(*app_, "log-level", level,
             {{"debug", LogLevel::kDebug},
              {"info", LogLevel::kInfo},
              {"warning", LogLevel::kWarning},
              {"error", LogLevel::kError},
              {"off", LogLevel::kOff}},
             "What is logged to stderr, and what is worse");
  app_->add_flag("--print-config", print_, "Print the effective configuration and end")
      ->configurable(false);
}

Result<bool> ServerCommandLine::parse(int argc, char** argv) {
  return parse_command_line(*app_, argc, argv);
}

bool ServerCommandLine::print_if_asked() const {
  if (print_) print_config(*app_);
  return print_;
}

}  // namespace sluice
