// `sluice key add|list|revoke --api-keys FILE`: makes, shows and takes back API keys. A key is
// printed once, when it is made; the file holds its hash alone.
// Thread: main.
#pragma once

namespace sluice {

// argv[0] is "key". Returns the exit code: 0, or 1 after one line on stderr.
[[nodiscard]] int run_key(int argc, char** argv);

}  // namespace sluice
