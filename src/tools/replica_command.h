// `sluice replica`: one model behind gRPC until SIGTERM, SIGINT or Replica/Drain. Prints one line
// `ready …` once it serves.
// First signal: drain. Second: drain without grace. Third: end at once.
// Thread: main.
#pragma once

#include <functional>
#include <string>

namespace sluice {

class Replica;

// Serves what argv says; `when_ready` runs after the line. Returns the exit code: 0, or 1 after one
// line on stderr.
[[nodiscard]] int serve(const std::string& command, int argc, char** argv,
                        const std::function<void(const Replica&)>& when_ready);

// argv[0] is "replica".
[[nodiscard]] int run_replica(int argc, char** argv);

}  // namespace sluice
