// `sluice gateway`: OpenAI's API in front of replicas, until SIGTERM or SIGINT. Prints one line
// `ready …` once it listens; /readyz says when a replica takes requests. First signal: drain.
// Second: drain without grace. Third: end at once. Thread: main.
#pragma once

namespace sluice {

// argv[0] is "gateway". Returns the exit code: 0, or 1 after one line on stderr.
[[nodiscard]] int run_gateway(int argc, char** argv);

}  // namespace sluice
