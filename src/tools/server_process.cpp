#include "tools/server_process.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "replica/grpc_log.h"
#include "replica/process.h"

namespace sluice {

void begin_server_process(LogLevel level) {
  std::signal(SIGPIPE, SIG_IGN);
  set_log_level(level);
  route_grpc_log();
  raise_descriptor_limit();
  check_listen_backlog();
}

int end_with(const std::string& command, const Error& error) {
  std::fprintf(stderr, "sluice %s: %s\n", command.c_str(), error.message.c_str());
  return EXIT_FAILURE;
}

}  // namespace sluice
