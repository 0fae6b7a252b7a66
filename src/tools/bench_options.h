// What the command line of `sluice bench` says, with the files it names read. Thread: any (values).
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "load/load_options.h"

namespace sluice {

struct BenchOptions {
  std::string target;  // as it was given
  LoadOptions load;
  std::string json_file;
  std::string html_file;
};

// argv[0] is "bench". Nothing: --help was answered. Errors name the flag, and the file.
[[nodiscard]] Result<std::optional<BenchOptions>> parse_bench_options(int argc, char** argv);

}  // namespace sluice
