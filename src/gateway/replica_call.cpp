#include "gateway/replica_call.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "contract/wire_client.h"
#include "gateway/stream_core.h"
#include "inference.grpc.pb.h"

namespace sluice {

void prepare_call(grpc::ClientContext& call, const ReplicaEndpoint& endpoint,
                  const CallContext& context) {
  endpoint.authorize(call);
  if (context.deadline != kForever) {
    const auto left = context.deadline - std::chrono::steady_clock::now();
    call.set_deadline(std::chrono::system_clock::now() +
                      std::chrono::duration_cast<std::chrono::system_clock::duration>(left));
  }
  if (!context.request_id.empty() && is_plain(context.request_id))
    call.AddMetadata("x-request-id", context.request_id);
  if (!context.traceparent.empty() && is_plain(context.traceparent))
    call.AddMetadata("traceparent", context.traceparent);
}

bool is_plain(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

Result<void> how_it_ended(const grpc::Status& status, const grpc::ClientContext& call) {
  Result<void> how = from_grpc(status);
  if (how) return how;
  // It is the gateway's key, and none of its clients'.
  if (how.error().code == Code::kUnauthenticated || how.error().code == Code::kPermissionDenied)
    return fail(Code::kUnavailable, "the replica does not take this gateway's key");
  const auto& trailers = call.GetServerTrailingMetadata();
  // A replica's own answer carries a request id; without one it is gRPC that speaks, of addresses
  // which are nobody's business.
  if (how.error().code == Code::kUnavailable && trailers.count("x-request-id") == 0)
    return fail(Code::kUnavailable, "the replica is gone");
  const auto wait = trailers.find("retry-after-ms");
  if (wait == trailers.end()) return how;
  std::uint32_t ms = 0;
  const auto parsed =
      std::from_chars(wait->second.data(), wait->second.data() + wait->second.size(), ms);
  if (parsed.ec == std::errc()) how.error().retry_after = std::chrono::milliseconds(ms);
  return how;
}

class ReplicaCalls::Call final : public grpc::ClientReadReactor<inference::GenerateResponse>,
                                 public std::enable_shared_from_this<Call> {
 public:
  Call(ReplicaCalls& calls, Gate::Pass pass, ReplicaChannels::Place place,
       inference::GenerateRequest&& request)
      : calls_(&calls),
        io_(calls.io_),
        pass_(std::move(pass)),
        place_(std::move(place)),
        request_(std::move(request)),
        decoder_(request_.has_n() ? static_cast<std::uint32_t>(request_.n()) : 1) {}

  void open(std::shared_ptr<ReplicaStream::Core> core, const ReplicaEndpoint& endpoint,
            const CallContext& context);
  // Nobody is told any more.
  void close();
  // The reader is told, and ReplicaCalls is not.
  void shut_down();

  void OnReadDone(bool ok) noexcept override;
  void OnDone(const grpc::Status& status) noexcept override;

 private:
  void read_on();
  void came();
  void finished(const grpc::Status& status);
  void let_go() EXCLUDES(mutex_);

  ReplicaCalls* calls_;  // null once it forgot this
  asio::io_context& io_;
  std::optional<Gate::Pass> pass_;
  std::optional<ReplicaChannels::Place> place_;
  grpc::ClientContext context_;
  inference::GenerateRequest request_;
  inference::GenerateResponse response_;  // gRPC's while a read is out
  ResponseDecoder decoder_;
  std::shared_ptr<ReplicaStream::Core> core_;  // null once it has ended
  std::shared_ptr<Call> self_;                 // until OnDone

  Mutex mutex_;
  bool reading_ GUARDED_BY(mutex_) = false;
  bool has_come_ GUARDED_BY(mutex_) = false;  // response_ is not taken yet
  bool held_ GUARDED_BY(mutex_) = true;       // against OnDone, between two reads
};

void ReplicaCalls::Call::open(std::shared_ptr<ReplicaStream::Core> core,
                              const ReplicaEndpoint& endpoint, const CallContext& context) {
  self_ = shared_from_this();
  core_ = std::move(core);
  core_->connect({.grant = [this](StreamCredit) { read_on(); }, .cancel = [this] { close(); }});
  prepare_call(context_, endpoint, context);
  inference::LLM::Stub(place_->channel()).async()->Generate(&context_, &request_, this);
  AddHold();
  StartCall();
  read_on();
}

void ReplicaCalls::Call::read_on() {
  if (!core_ || !core_->has_credit()) return;
  {
    const MutexLock lock(mutex_);
    if (reading_ || has_come_ || !held_) return;
    reading_ = true;
  }
  StartRead(&response_);
}

void ReplicaCalls::Call::OnReadDone(bool ok) noexcept {
  if (!ok) return let_go();
  {
    const MutexLock lock(mutex_);
    reading_ = false;
    has_come_ = true;
  }
  asio::post(io_, [self = shared_from_this()] { self->came(); });
}

void ReplicaCalls::Call::let_go() {
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(held_, false)) return;
  }
  RemoveHold();
}

void ReplicaCalls::Call::came() {
  {
    const MutexLock lock(mutex_);
    has_come_ = false;
  }
  const std::shared_ptr<ReplicaStream::Core> core = core_;
  if (!core) return;  // closed meanwhile
  auto received = decoder_.decode(response_);
  if (received) {
    core->deliver(std::move(*received));
    read_on();
  } else {
    core->end(tl::unexpected(std::move(received.error())));
    close();
  }
  core->wake();
}

void ReplicaCalls::Call::OnDone(const grpc::Status& status) noexcept {
  // The post comes before the pass goes back: with the last pass the loop may go, too. And it takes
  // the last reference along (replica_endpoint.h says why).
  const auto pass = std::move(pass_);
  asio::post(io_, [self = std::move(self_), status] { self->finished(status); });
}

void ReplicaCalls::Call::finished(const grpc::Status& status) {
  place_.reset();
  if (ReplicaCalls* const calls = std::exchange(calls_, nullptr))
    calls->running_.erase(shared_from_this());
  const auto core = std::exchange(core_, nullptr);
  if (!core) return;
  core->end(how_it_ended(status, context_));
  core->wake();
}

void ReplicaCalls::Call::close() {
  core_ = nullptr;
  context_.TryCancel();
  bool idle = false;
  {
    const MutexLock lock(mutex_);
    idle = !reading_;
  }
  if (idle) let_go();
}

void ReplicaCalls::Call::shut_down() {
  calls_ = nullptr;
  place_.reset();
  if (const auto core = core_) {
    core->end(fail(Code::kCancelled, "the gateway is shutting down"));
    core->wake();
  }
  close();
}

void ReplicaCalls::start(std::shared_ptr<ReplicaStream::Core> core,
                         inference::GenerateRequest&& request, ReplicaChannels& channels,
                         const CallContext& context) {
  auto pass = closed_ ? std::nullopt : calls_.enter();
  if (!pass) return core->end(fail(Code::kUnavailable, "the gateway is shutting down"));
  const auto call =
      std::make_shared<Call>(*this, std::move(*pass), channels.take(), std::move(request));
  running_.insert(call);
  call->open(std::move(core), channels.endpoint(), context);
}

void ReplicaCalls::close() {
  closed_ = true;
  for (const auto& call : std::exchange(running_, {})) call->shut_down();
}

}  // namespace sluice
