// Loads a replica over one connection. Usage:
//   wire_load attach|generate HOST:PORT STREAMS MAX_TOKENS SECONDS
//   wire_load chat HOST:PORT STREAMS MAX_TOKENS QUESTIONS
//   wire_load first-grpc|first-http HOST:PORT 1 1 ROUNDS
//   wire_load hold-attach|hold-generate HOST:PORT STREAMS
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "load.h"

int main(int argc, char** argv) {
  if (argc < 4)
    return std::fputs("usage: wire_load LOAD HOST:PORT STREAMS [MAX_TOKENS SECONDS|QUESTIONS]\n",
                      stderr),
           1;
  const std::string name = argv[1];
  bench::Load load{.channel = grpc::CreateChannel(argv[2], grpc::InsecureChannelCredentials()),
                   .streams = std::atoi(argv[3])};
  if (argc > 4) load.max_tokens = std::atoi(argv[4]);
  const int last = argc > 5 ? std::atoi(argv[5]) : 0;
  if (last > 0) load.duration = std::chrono::seconds(last);
  if (name == "attach") return bench::attach(load);
  if (name == "first-http") return bench::first_http(argv[2], last);
  if (name == "chat" || name == "first-grpc") load.questions = last;
  if (name == "first-grpc") return bench::first_grpc(load);
  if (name == "generate" || name == "chat") return bench::generate(load);
  if (name == "hold-attach") return bench::hold_attach(load);
  if (name == "hold-generate") return bench::hold_generate(load);
  return std::fputs("no such load\n", stderr), 1;
}
