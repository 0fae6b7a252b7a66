#include "replica/self_proof.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/concat.h"
#include "base/mutex.h"
#include "replica/credentials.h"
#include "replica/h2_probe.h"

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kScaledPingInterval{10};
constexpr std::uint32_t kScaledMessageBytes = 4096;

// Sends each message back, and counts what it got.
class EchoService final : public grpc::CallbackGenericService {
 public:
  [[nodiscard]] int received() const noexcept { return received_; }

 private:
  class Echo final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Echo(std::atomic<int>& received) : received_(received) { StartRead(&message_); }

   private:
    void OnReadDone(bool ok) noexcept override {
      if (!ok) return Finish(grpc::Status::CANCELLED);
      ++received_;
      StartWriteAndFinish(&message_, {}, grpc::Status::OK);
    }
    void OnDone() noexcept override { delete this; }

    std::atomic<int>& received_;
    grpc::ByteBuffer message_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) noexcept override {
    return new Echo(received_);
  }

  std::atomic<int> received_ = 0;
};

struct ThrowAwayServer {
  EchoService service;
  std::shared_ptr<grpc::ServerCredentials> tls_credentials;  // outlives the server
  int plain_port = 0;
  int tls_port = 0;
  std::unique_ptr<grpc::Server> server;

  ~ThrowAwayServer() {
    if (server) server->Shutdown(std::chrono::system_clock::now());
  }
};

tl::unexpected<Error> broken(std::string promise) {
  return fail(Code::kInternal, concat("self-proof: ", promise, "; not started"));
}

void pause(std::chrono::milliseconds time) {
  SystemClock clock;
  Mutex mutex;
  CondVar never;
  const TimePoint until = clock.now() + time;
  const MutexLock lock(mutex);
  while (clock.now() < until) clock.wait_until(never, mutex, until);
}

Result<void> prove_polite_client(int port, const Limits& limits, std::uint32_t strikes) {
  H2Probe client(port, H2Probe::Security::kPlain);
  if (!client.greeted()) return broken("the server does not speak HTTP/2");
  if (client.max_concurrent_streams() != limits.max_concurrent_streams) {
    return broken(concat("--max-concurrent-streams ", limits.max_concurrent_streams,
                         " is not what the server announces"));
  }
  for (std::uint32_t i = 0; i < strikes + 3; ++i) {
    if (i > 0) pause(2 * kScaledPingInterval);
    if (client.ping(1) != H2Probe::Pings::kAnswered) {
      return broken(concat("a client that pings no more often than each ",
                           limits.min_ping_interval.count(),
                           " ms (--min-ping-interval-ms) is sent away"));
    }
  }
  return {};
}

Result<void> prove_rude_client(int port, std::uint32_t strikes) {
  H2Probe client(port, H2Probe::Security::kPlain);
  if (!client.greeted()) return broken("the server does not speak HTTP/2");
  // gRPC answers what it has read before it says its last word: that is seen by the next ping.
  auto pings = client.ping(static_cast<int>(strikes) + 2);
  if (pings == H2Probe::Pings::kAnswered) pings = client.ping(1);
  if (pings != H2Probe::Pings::kTooMany) {
    return broken(
        "a client that pings all the time is not told too_many_pings (--max-ping-strikes)");
  }
  return {};
}

grpc::StatusCode echo(grpc::GenericStub& stub, std::size_t bytes) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + H2Probe::kPatience);
  context.set_wait_for_ready(true);
  const grpc::Slice slice(std::string(bytes, 'x'));
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  std::promise<grpc::StatusCode> code;
  stub.UnaryCall(&context, "/sluice.SelfProof/Echo", {}, &request, &response,
                 [&code](grpc::Status status) { code.set_value(status.error_code()); });
  return code.get_future().get();
}

Result<void> prove_message_bounds(const ThrowAwayServer& proof, const Limits& limits) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  grpc::GenericStub stub(grpc::CreateCustomChannel(concat("127.0.0.1:", proof.plain_port),
                                                   grpc::InsecureChannelCredentials(), arguments));
  const auto bound = concat(limits.max_message_bytes, " bytes (--max-message-bytes)");
  Limits scaled = limits;
  scaled.max_message_bytes = kScaledMessageBytes;
  const auto most = static_cast<std::size_t>(grpc_receive_bound(scaled));
  if (echo(stub, kScaledMessageBytes) != grpc::StatusCode::OK || proof.service.received() != 1) {
    return broken(concat("a message of ", bound, " does not pass"));
  }
  if (echo(stub, kScaledMessageBytes + 1) != grpc::StatusCode::RESOURCE_EXHAUSTED ||
      proof.service.received() != 2) {
    return broken(concat("the server sends more than ", bound));
  }
  if (echo(stub, most + 1) != grpc::StatusCode::RESOURCE_EXHAUSTED ||
      proof.service.received() != 2) {
    return broken(concat("the server takes messages of far more than ", bound));
  }
  return {};
}

Result<void> prove_tls(int port, const ServerTls& tls) {
  if (H2Probe(port, H2Probe::Security::kPlain).greeted())
    return broken("a client without TLS is served (--tls-cert)");
  H2Probe client(port, H2Probe::Security::kTls);
  const bool greeted = client.greeted();
  const std::string shown = client.server_certificate();
  if (shown.empty()) return broken("no TLS handshake is possible with --tls-cert and --tls-key");
  if (shown != leaf_certificate(tls.current()->certificate)) {
    return broken("the server shows another certificate than that of --tls-cert");
  }
  if (tls.asks_clients() && greeted)
    return broken("a client without a certificate is served (--tls-client-ca)");
  if (!tls.asks_clients() && !greeted)
    return broken("a client with TLS is not served (--tls-cert)");
  return {};
}

}  // namespace

Result<void> prove_server_options(const Limits& limits, const TransportOptions& transport,
                                  const ServerTls* tls, const SetServerOptions& set_options) {
  Limits scaled = limits;
  scaled.max_message_bytes = kScaledMessageBytes;
  scaled.min_ping_interval = kScaledPingInterval;
  TransportOptions scaled_transport = transport;
  scaled_transport.max_ping_strikes = std::min(transport.max_ping_strikes, 2U);

  ThrowAwayServer proof;
  grpc::ServerBuilder builder;
  set_options(scaled, scaled_transport, builder);
  builder.RegisterCallbackGenericService(&proof.service);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &proof.plain_port);
  if (tls != nullptr) {
    proof.tls_credentials = tls->credentials();
    builder.AddListeningPort("127.0.0.1:0", proof.tls_credentials, &proof.tls_port);
  }
  proof.server = builder.BuildAndStart();
  if (!proof.server) return broken("no server can be started on the loopback address");

  const std::uint32_t strikes = scaled_transport.max_ping_strikes;
  auto polite = std::async(std::launch::async,
                           [&] { return prove_polite_client(proof.plain_port, limits, strikes); });
  Result<void> proved = prove_message_bounds(proof, limits);
  if (proved && strikes > 0) proved = prove_rude_client(proof.plain_port, strikes);
  if (proved && tls != nullptr) proved = prove_tls(proof.tls_port, *tls);
  auto tolerated = polite.get();
  return proved ? tolerated : proved;
}

}  // namespace sluice
