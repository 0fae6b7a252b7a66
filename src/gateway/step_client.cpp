#include "gateway/step_client.h"

#include <google/protobuf/arena.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <deque>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/mutex.h"
#include "contract/wire_client.h"
#include "gateway/stream_core.h"
#include "inference.grpc.pb.h"

namespace sluice {
namespace {

// Below a third of the age at which a server closes connections by default.
constexpr std::chrono::minutes kCallAge{20};
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kMostPause{2'000};
// A message to the replica is closed above this; each request in it is below --large-request-bytes.
constexpr std::size_t kMessageBytes = 1 << 20;
constexpr std::size_t kArenaBlockBytes = 64 << 10;
constexpr std::size_t kSpareBatches = 2;

// A message from the replica, in an arena: hundreds of small parts without an allocation each.
struct Batch {
  std::vector<char> block = std::vector<char>(kArenaBlockBytes);
  google::protobuf::Arena arena{[this] {
    google::protobuf::ArenaOptions options;
    options.initial_block = block.data();
    options.initial_block_size = block.size();
    return options;
  }()};
  inference::StepBatch* message = nullptr;

  void renew() {
    arena.Reset();
    message = google::protobuf::Arena::CreateMessage<inference::StepBatch>(&arena);
  }
};

std::chrono::milliseconds with_jitter(std::chrono::milliseconds pause) {
  std::minstd_rand random{std::random_device{}()};
  return pause * std::uniform_int_distribution<int>(75, 125)(random) / 100;
}

Error gone() { return {Code::kUnavailable, "the replica is gone"}; }

}  // namespace

StepMetrics::StepMetrics(Metrics& metrics)
    : streams(metrics.gauge("sluice_gateway_attach_streams", "Step streams that are open")),
      broken(metrics.counter("sluice_gateway_attach_broken_total",
                             "Step streams that broke with all their requests")),
      messages(metrics.counter("sluice_gateway_attach_messages_total",
                               "Messages that came on step streams")),
      credit_stalls(metrics.counter("sluice_gateway_credit_stalls_total",
                                    "Times that a request had used all of its credit")) {}

// One Attach call. Its reads and writes come round in gRPC's threads; the requests are the I/O
// thread's alone.
class StepClient::Call final
    : public grpc::ClientBidiReactor<inference::AttachRequest, inference::StepBatch>,
      public std::enable_shared_from_this<Call> {
 public:
  Call(StepClient& client, Gate::Pass pass)
      : client_(&client),
        io_(client.around_.io),
        table_(client.around_.table),
        metrics_(client.around_.metrics),
        replica_(client.replica_),
        pass_(std::move(pass)) {}

  void open();
  void start(std::shared_ptr<ReplicaStream::Core> core, inference::Start&& start);
  void close();
  [[nodiscard]] bool idle() const noexcept { return running_.empty(); }
  [[nodiscard]] bool old() const noexcept { return table_.now() - opened_at_ > kCallAge; }
  void leave_when_idle() {
    if (running_.empty()) context_.TryCancel();
    retired_ = true;
  }

  void OnReadDone(bool ok) noexcept override EXCLUDES(mutex_);
  void OnWriteDone(bool ok) noexcept override EXCLUDES(mutex_);
  void OnDone(const grpc::Status& status) noexcept override EXCLUDES(mutex_);

 private:
  struct Running {
    std::shared_ptr<ReplicaStream::Core> core;
    ResponseDecoder decoder;
  };
  using Requests = std::unordered_map<std::uint64_t, Running>;

  // I/O thread.
  void take_batches() EXCLUDES(mutex_);
  void take(inference::StepItem& item);
  [[nodiscard]] Result<void> pass_on(Running& running, inference::StepItem& item);
  void forget(Requests::iterator request);
  void cancel(std::uint64_t id) EXCLUDES(mutex_);
  void grant(std::uint64_t id, StreamCredit credit) EXCLUDES(mutex_);
  void wake_touched();
  void flush_soon();
  void flush() noexcept EXCLUDES(mutex_);
  void finished(const grpc::Status& status);

  // Any thread.
  [[nodiscard]] inference::AttachRequest& unsent() REQUIRES(mutex_);
  [[nodiscard]] bool next_message() REQUIRES(mutex_);

  StepClient* client_;  // null once it closed this
  asio::io_context& io_;
  ReplicaTable& table_;
  StepMetrics& metrics_;
  const ReplicaId replica_;
  std::optional<Gate::Pass> pass_;
  grpc::ClientContext context_;
  std::shared_ptr<Call> self_;    // until OnDone
  std::unique_ptr<Batch> batch_;  // gRPC's while a read is out

  // The I/O thread's.
  Requests running_;
  std::uint64_t last_id_ = 0;
  std::vector<std::unique_ptr<Batch>> taken_;
  std::vector<std::shared_ptr<ReplicaStream::Core>> touched_;
  TimePoint opened_at_{};
  bool flush_posted_ = false;
  bool served_ = false;  // something came
  bool retired_ = false;

  Mutex mutex_;
  std::vector<std::unique_ptr<Batch>> arrived_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Batch>> spare_ GUARDED_BY(mutex_);
  std::deque<inference::AttachRequest> unsent_ GUARDED_BY(mutex_);
  std::size_t last_unsent_bytes_ GUARDED_BY(mutex_) = 0;  // of starts in the last of them
  inference::AttachRequest sending_;                      // gRPC's while a write is out
  bool writing_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;  // no more writes
};

void StepClient::Call::open() {
  self_ = shared_from_this();
  opened_at_ = table_.now();
  metrics_.streams.add(1);
  client_->endpoint_->authorize(context_);
  inference::Replica::Stub(client_->channel_).async()->Attach(&context_, this);
  batch_ = std::make_unique<Batch>();
  batch_->renew();
  AddHold();  // for writes, which begin outside of reactions; until the last read
  StartRead(batch_->message);
  StartCall();
}

void StepClient::Call::OnReadDone(bool ok) noexcept {
  bool first = false;
  {
    const MutexLock lock(mutex_);
    ended_ |= !ok;
    if (ok) {
      first = arrived_.empty();
      arrived_.push_back(std::move(batch_));
      if (spare_.empty()) {
        batch_ = std::make_unique<Batch>();
      } else {
        batch_ = std::move(spare_.back());
        spare_.pop_back();
      }
    }
  }
  if (!ok) return RemoveHold();
  if (first) asio::post(io_, [self = shared_from_this()] { self->take_batches(); });
  batch_->renew();
  StartRead(batch_->message);
}

void StepClient::Call::OnWriteDone(bool ok) noexcept {
  bool write = false;
  {
    const MutexLock lock(mutex_);
    ended_ |= !ok;
    writing_ = false;
    write = next_message();
  }
  if (write) StartWrite(&sending_);
}

void StepClient::Call::OnDone(const grpc::Status& status) noexcept {
  // The post comes before the pass goes back: with the last pass the loop may go, too.
  const auto self = std::move(self_);
  asio::post(io_, [self, status] { self->finished(status); });
  pass_.reset();
}

inference::AttachRequest& StepClient::Call::unsent() {
  if (unsent_.empty() || last_unsent_bytes_ >= kMessageBytes) {
    unsent_.emplace_back();
    last_unsent_bytes_ = 0;
  }
  return unsent_.back();
}

bool StepClient::Call::next_message() {
  if (writing_ || ended_ || unsent_.empty()) return false;
  sending_ = std::move(unsent_.front());
  unsent_.pop_front();
  writing_ = true;
  return true;
}

void StepClient::Call::start(std::shared_ptr<ReplicaStream::Core> core, inference::Start&& start) {
  const std::uint64_t id = ++last_id_;
  const StreamCredit credit = core->credit();
  const std::uint32_t choices = start.request().has_n() ? start.request().n() : 1;
  start.set_id(id);
  start.mutable_credit()->set_deltas(credit.deltas);
  start.mutable_credit()->set_bytes(credit.bytes);
  core->connect({.grant = [this, id](StreamCredit more) { grant(id, more); },
                 .cancel = [this, id] { cancel(id); }});
  running_.emplace(id, Running{std::move(core), ResponseDecoder(choices)});
  {
    const MutexLock lock(mutex_);
    inference::AttachRequest& message = unsent();
    last_unsent_bytes_ += start.ByteSizeLong();
    *message.add_starts() = std::move(start);
  }
  flush_soon();
}

void StepClient::Call::cancel(std::uint64_t id) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  forget(found);
  {
    const MutexLock lock(mutex_);
    unsent().add_cancels(id);
  }
  flush_soon();
}

void StepClient::Call::grant(std::uint64_t id, StreamCredit credit) {
  {
    const MutexLock lock(mutex_);
    inference::Credit& more = *unsent().add_credits();
    more.set_id(id);
    more.set_deltas(credit.deltas);
    more.set_bytes(credit.bytes);
  }
  flush_soon();
}

void StepClient::Call::flush_soon() {
  if (std::exchange(flush_posted_, true)) return;
  asio::post(io_, [self = shared_from_this()] { self->flush(); });
}

void StepClient::Call::flush() noexcept {
  flush_posted_ = false;
  bool write = false;
  {
    const MutexLock lock(mutex_);
    write = next_message();
    // The call can't be done before this write is begun.
    if (write) AddHold();
  }
  if (!write) return;
  StartWrite(&sending_);
  RemoveHold();
}

void StepClient::Call::take_batches() {
  {
    const MutexLock lock(mutex_);
    std::swap(arrived_, taken_);
  }
  metrics_.messages.add(static_cast<double>(taken_.size()));
  served_ = true;
  for (const auto& batch : taken_) {
    for (inference::StepItem& item : *batch->message->mutable_items()) take(item);
  }
  if (taken_.back()->message->has_load())
    table_.set_load(replica_, from_wire(taken_.back()->message->load()));
  {
    const MutexLock lock(mutex_);
    for (auto& batch : taken_) {
      if (spare_.size() < kSpareBatches) spare_.push_back(std::move(batch));
    }
  }
  taken_.clear();
  wake_touched();
}

void StepClient::Call::take(inference::StepItem& item) {
  const auto found = running_.find(item.id());
  if (found == running_.end()) return;  // cancelled, and the replica did not know yet
  const std::shared_ptr<ReplicaStream::Core>& core = found->second.core;
  if (touched_.empty() || touched_.back() != core) touched_.push_back(core);
  Result<void> right = item.has_response() ? pass_on(found->second, item) : Result<void>();
  if (!right) {
    core->end(std::move(right));
    cancel(item.id());
  } else if (item.has_status()) {
    core->end(from_wire(item.status()));
    forget(found);
  }
}

Result<void> StepClient::Call::pass_on(Running& running, inference::StepItem& item) {
  auto received = running.decoder.decode(*item.mutable_response());
  if (!received) return tl::unexpected(std::move(received.error()));
  const bool costs_credit = !item.has_status() || !received->delta.bytes.empty();
  if (costs_credit && !running.core->covers(*received))
    return fail(Code::kInternal, "the replica sent more than it was granted");
  const bool had_credit = running.core->has_credit();
  running.core->deliver(std::move(*received));
  if (had_credit && !running.core->has_credit()) metrics_.credit_stalls.add();
  return {};
}

void StepClient::Call::forget(Requests::iterator request) {
  running_.erase(request);
  if (retired_ && running_.empty()) context_.TryCancel();
}

// A reader may do anything: start and cancel requests here, too.
void StepClient::Call::wake_touched() {
  std::vector<std::shared_ptr<ReplicaStream::Core>> cores;
  cores.swap(touched_);
  for (const auto& core : cores) core->wake();
  cores.clear();
  if (touched_.empty()) touched_.swap(cores);  // keeps the room
}

void StepClient::Call::finished(const grpc::Status& status) {
  if (client_ == nullptr) return;
  StepClient* const client = std::exchange(client_, nullptr);
  metrics_.streams.add(-1);
  const bool unimplemented = status.error_code() == grpc::StatusCode::UNIMPLEMENTED;
  if (unimplemented) table_.set_no_attach(replica_);
  if (!running_.empty()) metrics_.broken.add();
  for (auto& [id, running] : std::exchange(running_, {})) {
    running.core->end(tl::unexpected(gone()));
    touched_.push_back(std::move(running.core));
  }
  client->forget(shared_from_this(), served_);
  wake_touched();
}

void StepClient::Call::close() {
  if (std::exchange(client_, nullptr) == nullptr) return;
  metrics_.streams.add(-1);
  for (auto& [id, running] : std::exchange(running_, {})) {
    running.core->end(fail(Code::kCancelled, "the gateway is shutting down"));
    touched_.push_back(std::move(running.core));
  }
  context_.TryCancel();
  wake_touched();
}

StepClient::StepClient(Surroundings around, ReplicaId replica,
                       std::shared_ptr<const ReplicaEndpoint> endpoint)
    : around_(around),
      replica_(replica),
      endpoint_(std::move(endpoint)),
      channel_(endpoint_->open(ChannelUse::kSteps)),
      timer_(around.io) {}

StepClient::~StepClient() { close(); }

void StepClient::close() {
  closed_ = true;
  timer_.cancel();
  if (const auto call = std::exchange(call_, nullptr)) call->close();
  for (const auto& call : std::exchange(retiring_, {})) call->close();
}

bool StepClient::idle() const {
  return (!call_ || call_->idle()) && std::all_of(retiring_.begin(), retiring_.end(),
                                                  [](const auto& call) { return call->idle(); });
}

void StepClient::start(std::shared_ptr<ReplicaStream::Core> core, inference::Start&& start) {
  if (call_ && call_->old()) {
    retiring_.push_back(call_);
    call_->leave_when_idle();
    call_ = nullptr;
  }
  if (!call_) attach();
  if (!call_) return core->end(fail(Code::kUnavailable, "the gateway is shutting down"));
  call_->start(std::move(core), std::move(start));
}

void StepClient::attach() {
  timer_.cancel();
  auto pass = closed_ ? std::nullopt : around_.calls.enter();
  if (!pass) return;
  call_ = std::make_shared<Call>(*this, std::move(*pass));
  call_->open();
}

void StepClient::forget(const std::shared_ptr<Call>& call, bool had_served) {
  std::erase(retiring_, call);
  if (call_ != call) return;
  call_ = nullptr;
  if (had_served) pause_ = {};
  attach_later();
}

void StepClient::attach_later() {
  if (!around_.table.attach(replica_)) return;
  timer_.expires_after(with_jitter(pause_));
  pause_ = std::clamp(pause_ * 2, kFirstPause, kMostPause);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self && !error && !self->call_) self->attach();
  });
}

}  // namespace sluice
