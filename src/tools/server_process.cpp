#include "tools/server_process.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/process.h"
#include "replica/library_logs.h"

namespace sluice {

std::unique_ptr<LogThread> begin_server_process(LogLevel level) {
  std::signal(SIGPIPE, SIG_IGN);
  set_log_level(level);
  auto log = std::make_unique<LogThread>();
  route_library_logs();
  raise_descriptor_limit();
  check_listen_backlog();
  return log;
}

int end_with(const std::string& command, const Error& error) {
  std::fprintf(stderr, "sluice %s: %s\n", command.c_str(), error.message.c_str());
  return EXIT_FAILURE;
}

}  // namespace sluice
