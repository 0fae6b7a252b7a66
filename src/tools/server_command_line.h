// ServerCommandLine: the command line of a command that serves: the flags that all of these have,
// beside those that the command adds to app(). A flag given twice counts as given last.
// Thread: main.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "base/tls_files.h"

namespace CLI {
class App;
}

namespace sluice {

class ServerCommandLine {
 public:
  ServerCommandLine(const std::string& command, const std::string& description);
  ~ServerCommandLine();

  [[nodiscard]] CLI::App& app() noexcept { return *app_; }
  void add_address(const std::string& flag, std::string& field, const std::string& help);
  void add_file(const std::string& flag, std::string& field, const std::string& help);
  // --metrics-listen, --tls-*, --api-keys.
  void add_server(std::string& metrics_listen, TlsFiles& tls, std::string& api_keys);
  // --log-level, --print-config.
  void add_process(LogLevel& level);

  // False: --help was answered. Errors name the flag, or the file of --config and its line.
  [[nodiscard]] Result<bool> parse(int argc, char** argv);
  // Prints the effective configuration, if --print-config asks for it, and says whether.
  [[nodiscard]] bool print_if_asked() const;

 private:
  std::unique_ptr<CLI::App> app_;
  bool print_ = false;
};

}  // namespace sluice
