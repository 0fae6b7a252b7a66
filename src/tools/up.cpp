#include "tools/up.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "base/concat.h"
#include "gateway/gateway.h"
#include "replica/replica.h"
#include "tools/replica_command.h"
#include "tools/serve_options.h"

namespace sluice {
namespace {

constexpr std::chrono::seconds kLocalReplica{10};

void show_what_to_try(const Gateway& gateway, const Replica& replica) {
  const std::string http = gateway.address();
  const std::string grpc = replica.address();
  std::printf(
      "\nIn another terminal:\n"
      "  ./run chat --server %s \"Name the capital city of France.\"\n"
      "  curl -N http://%s/v1/chat/completions -H 'Content-Type: application/json' -d "
      "'{\"model\":\"local\",\"stream\":true,\"temperature\":0,\"messages\":[{\"role\":\"user\","
      "\"content\":\"Name "
      "the capital city of France.\"}]}'\n"
      "  grpcurl -plaintext -d '{\"model\":\"local\",\"prompt\":\"SGVsbG8=\",\"max_tokens\":16}' "
      "%s inference.LLM/Generate\n"
      "OpenAI's clients: base_url=http://%s/v1, any api_key, model \"local\".\n",
      grpc.c_str(), http.c_str(), grpc.c_str(), http.c_str());
  if (replica.metrics_address() != "off")
    std::printf("Metrics: http://%s/metrics and http://%s/metrics\n",
                replica.metrics_address().c_str(), http.c_str());
  std::printf("Ctrl-C ends it.\n");
}

}  // namespace

int run_up(int argc, char** argv) {
  std::unique_ptr<Gateway> gateway;
  std::atomic<Gateway*> serving = nullptr;
  Front front;
  front.open = [&](ServeOptions& options, Replica& replica) -> Result<std::string> {
    auto started = Gateway::start(std::move(*options.gateway),
                                  {replica.in_process_channel(), replica.own_key()});
    if (!started) return tl::unexpected(std::move(started.error()));
    gateway = std::move(*started);
    serving = gateway.get();
    if (!gateway->wait_ready(kLocalReplica))
      return fail(Code::kInternal, "the replica in this process does not answer its gateway");
    return concat("http=", gateway->address(), ' ');
  };
  front.when_ready = [&](const Replica& replica) { show_what_to_try(*gateway, replica); };
  front.drain = [&](bool at_once) {
    Gateway* const running = serving;
    if (running == nullptr) return;
    at_once ? running->cut() : running->begin_drain();
  };
  front.close = [&] {
    if (!gateway) return;
    gateway->begin_drain();
    static_cast<void>(gateway->wait_drained());
    gateway.reset();
  };
  return serve("up", argc, argv, front);
}

}  // namespace sluice
