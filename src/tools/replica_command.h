// `sluice replica`: one model behind gRPC until SIGTERM, SIGINT or Replica/Drain. Prints one line
// `ready …` once it serves. First signal: drain. Second: drain without grace. Third: end at once.
// Thread: main.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace sluice {

class Replica;
struct ServeOptions;

// What stands in front of a replica in the same process (`sluice up`). Each may be empty.
struct Front {
  // After the warm-up. Returns what the ready line says of it, with a space behind.
  std::function<Result<std::string>(ServeOptions& options, Replica& replica)> open;
  std::function<void(const Replica&)> when_ready;  // after the line
  std::function<void(bool at_once)> drain;         // beside the replica's. Thread: of the signals
  std::function<void()> close;                     // after the replica's drain
};

// Serves what argv says. Returns the exit code: 0, or 1 after one line on stderr.
[[nodiscard]] int serve(const std::string& command, int argc, char** argv, const Front& front);

// argv[0] is "replica".
[[nodiscard]] int run_replica(int argc, char** argv);

}  // namespace sluice
