#include "tools/chat_call.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <utility>

#include "contract/limits.h"
#include "inference.grpc.pb.h"

namespace sluice {
namespace {

int milliseconds(std::chrono::milliseconds time) { return static_cast<int>(time.count()); }

grpc::ChannelArguments channel_arguments() {
  const Limits limits;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(limits.max_message_bytes));
  arguments.SetMaxSendMessageSize(static_cast<int>(limits.max_message_bytes));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(limits.keepalive_time));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(limits.keepalive_timeout));
  return arguments;
}

Error error_of(const grpc::Status& status) {
  return {static_cast<Code>(status.error_code()), status.error_message()};
}

}  // namespace

double Answer::tokens_per_second() const noexcept {
  const double seconds = std::chrono::duration<double>(decoding).count();
  return tokens > 1 && seconds > 0 ? (tokens - 1) / seconds : 0;
}

std::shared_ptr<grpc::Channel> open_channel(const std::string& address,
                                            const std::optional<TlsPem>& tls) {
  if (!tls) {
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                     channel_arguments());
  }
  grpc::SslCredentialsOptions pem;
  pem.pem_root_certs = tls->authority;
  pem.pem_cert_chain = tls->certificate;
  pem.pem_private_key = tls->key;
  return grpc::CreateCustomChannel(address, grpc::SslCredentials(pem), channel_arguments());
}

bool answers(grpc::Channel& channel, Duration within) {
  const auto deadline = std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::system_clock::duration>(within);
  for (;;) {
    const grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) return true;
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) return false;
    if (!channel.WaitForStateChange(state, deadline)) return false;
  }
}

ChatServer::ChatServer(std::shared_ptr<grpc::Channel> channel, const ChatOptions& options)
    : channel_(std::move(channel)), options_(options) {}

Result<Answer> ChatServer::generate(const inference::GenerateRequest& request,
                                    Interrupts& interrupts,
                                    const std::function<bool(std::string_view)>& show) {
  grpc::ClientContext call;
  if (!options_.api_key.empty()) call.AddMetadata("authorization", "Bearer " + options_.api_key);
  if (options_.timeout) call.set_deadline(std::chrono::system_clock::now() + *options_.timeout);

  std::atomic<bool> cancelled = false;
  const OnInterrupt cancel(interrupts, [&] {
    cancelled = true;
    call.TryCancel();
  });
  const SystemClock clock;
  const TimePoint begin = clock.now();
  const auto stub = inference::LLM::NewStub(channel_);
  const auto stream = stub->Generate(&call, request);

  Answer answer;
  inference::GenerateResponse message;
  TimePoint first = kForever;
  while (stream->Read(&message)) {
    const TimePoint now = clock.now();
    if (message.completion_tokens() > 0 && first == kForever) {
      first = now;
      answer.to_first_token = first - begin;
    }
    answer.tokens = message.completion_tokens();
    if (first != kForever) answer.decoding = now - first;
    answer.text += message.delta();
    if (!message.delta().empty() && !show(message.delta())) call.TryCancel();
  }
  const grpc::Status status = stream->Finish();
  if (status.ok()) return answer;
  if (!cancelled) return tl::unexpected(error_of(status));
  answer.cancelled = true;
  return answer;
}

}  // namespace sluice
