// sluice: serves large language models over gRPC. Each subcommand parses its own options.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tools/bench_command.h"
#include "tools/chat.h"
#include "tools/gateway_command.h"
#include "tools/key_command.h"
#include "tools/replica_command.h"
#include "tools/up.h"

namespace {

struct Command {
  std::string_view name;
  const char* help;
  int (*run)(int argc, char** argv);
};

constexpr std::array<Command, 6> kCommands{{
    {"up", "serve a model over gRPC and OpenAI's API, and show what to try", &sluice::run_up},
    {"replica", "serve one model over gRPC", &sluice::run_replica},
    {"gateway", "serve OpenAI's API in front of replicas", &sluice::run_gateway},
    {"chat", "talk to a model in the terminal", &sluice::run_chat},
    {"bench", "load a server and measure it", &sluice::run_bench},
    {"key", "make, list and revoke API keys", &sluice::run_key},
}};

void show_help(std::FILE* where) {
  std::fputs("sluice COMMAND [FLAGS]   (sluice COMMAND --help says more)\n\n", where);
  for (const Command& command : kCommands)
    std::fprintf(where, "  %-8s %s\n", command.name.data(), command.help);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--version") {
    std::puts("sluice " SLUICE_VERSION);
    return EXIT_SUCCESS;
  }
  if (name == "--help" || name == "-h") {
    show_help(stdout);
    return EXIT_SUCCESS;
  }
  for (const Command& command : kCommands) {
    if (command.name == name) return command.run(argc - 1, argv + 1);
  }
  if (!name.empty()) std::fprintf(stderr, "sluice: there is no command \"%s\"\n\n", argv[1]);
  show_help(stderr);
  return EXIT_FAILURE;
}
