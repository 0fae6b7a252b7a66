// `sluice up`: a replica with the default model and, in the same process, the gateway in front of
// it, joined by gRPC's in-process channel; and what to try with them. Thread: main.
#pragma once

namespace sluice {

// argv[0] is "up". Returns the exit code.
[[nodiscard]] int run_up(int argc, char** argv);

}  // namespace sluice
