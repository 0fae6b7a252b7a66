#include "tools/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "tools/config_file.h"

namespace sluice {

Result<bool> parse_command_line(CLI::App& app, int argc, char** argv) {
  const ConfigFile file(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::FileError& error) {
    return invalid(std::string("--config: ") + error.what());
  } catch (const CLI::Error& error) {
    // what the file spoilt may be why the rest did not parse
    if (auto read = file.result(); !read) return tl::unexpected(read.error());
    return invalid(error.what());
  }
  if (auto read = file.result(); !read) return tl::unexpected(read.error());
  return true;
}

void print_config(const CLI::App& app) {
  std::fputs(app.config_to_str(true, true).c_str(), stdout);
}

}  // namespace sluice
