// `sluice chat`: a conversation in a terminal, or one answer for a pipe, over gRPC.
// With a prompt among the arguments or on a piped stdin: the answer's exact bytes on stdout, then
// the exit code. Otherwise a conversation; prompts and figures go to stderr, answers to stdout.
// Ctrl-C ends the answer under way, at the prompt the second one quits. Bounded by the server's
// limits; one request at a time. Thread: main.
#pragma once

namespace sluice {

// argv[0] is "chat". Returns the process' exit code: 0, 1 after an error of one line on stderr, 130
// after Ctrl-C.
[[nodiscard]] int run_chat(int argc, char** argv) noexcept;

}  // namespace sluice
