// ConfigFile: the flag --config of a command, and the TOML file behind it. The keys are the
// command's own flags without their dashes, so there is one schema for both; sections are refused,
// for flags have none. A flag on the command line beats the file, the file beats the environment.
// What is wrong is said as FILE:LINE: an unknown key, a value of another type than its flag's, one
// out of range, a key or flag that stands there twice. Bounded by 1 MiB. Thread: main.
#pragma once

#include <memory>

#include "base/error.h"

namespace CLI {
class App;
}

namespace sluice {

class ConfigFile {
 public:
  // Adds --config to `app`, which outlives this.
  explicit ConfigFile(CLI::App& app);
  ~ConfigFile();
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;

  // After app.parse(), whether it threw or not: the file's first fault.
  [[nodiscard]] Result<void> result() const;

 private:
  class Reader;
  std::shared_ptr<Reader> reader_;
};

}  // namespace sluice
