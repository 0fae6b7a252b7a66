// sluice bench: loads a server and reports what came of it. Thread: main.
#pragma once

namespace sluice {

// The exit code of the process: 0 also where requests failed, for that is a result; 1 where there
// is none, or it could not be written. 130: stopped by Ctrl-C, with what there was until then.
int run_bench(int argc, char** argv) noexcept;

}  // namespace sluice
