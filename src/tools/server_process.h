// What the process of every command that serves does before its threads begin, and what it says
// when it fails. Thread: main.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "base/log.h"

namespace sluice {

// The log, and what libraries log, in it; descriptors and backlog, with a warning where they are
// low. The log is written by the thread that comes back, which outlives whatever logs.
[[nodiscard]] std::unique_ptr<LogThread> begin_server_process(LogLevel level);

// Says it on stderr; gives the exit code.
[[nodiscard]] int end_with(const std::string& command, const Error& error);

}  // namespace sluice
