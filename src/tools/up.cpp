#include "tools/up.h"

#include <cstdio>
#include <string>

#include "replica/replica.h"
#include "tools/replica_command.h"

namespace sluice {
namespace {

void show_what_to_try(const Replica& replica) {
  const std::string grpc = replica.address();
  std::printf(
      "\nIn another terminal:\n"
      "  ./run chat --server %s \"Name the capital city of France.\"\n"
      "  grpcurl -plaintext -d '{\"model\":\"local\",\"prompt\":\"SGVsbG8=\",\"max_tokens\":16}' "
      "%s inference.LLM/Generate\n",
      grpc.c_str(), grpc.c_str());
  if (replica.metrics_address() != "off")
    std::printf("  curl -s http://%s/metrics\n", replica.metrics_address().c_str());
  std::printf("Ctrl-C ends it.\n");
}

}  // namespace

int run_up(int argc, char** argv) { return serve("up", argc, argv, &show_what_to_try); }

}  // namespace sluice
