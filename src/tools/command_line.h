// parse_command_line: a command's flags from its arguments and its --config file; --help is
// answered here. Errors are one line that names the flag, or the file and line. Thread: main.
#pragma once

#include "base/error.h"

namespace CLI {
class App;
}

namespace sluice {

// False: --help was answered, and there is nothing else to do.
[[nodiscard]] Result<bool> parse_command_line(CLI::App& app, int argc, char** argv);

// The effective configuration, as a file for --config, on stdout.
void print_config(const CLI::App& app);

}  // namespace sluice
