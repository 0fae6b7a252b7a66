// `sluice up`: the replica, and what to try with it. (The gateway in the same process is to come.)
// Thread: main.
#pragma once

namespace sluice {

// argv[0] is "up". Returns the exit code.
[[nodiscard]] int run_up(int argc, char** argv);

}  // namespace sluice
