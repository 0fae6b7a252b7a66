#include "gateway/step_wire.h"

#include <google/protobuf/arena.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <boost/asio/post.hpp>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "inference.grpc.pb.h"

namespace sluice {
namespace {

// Each request in a message is below --large-request-bytes; a replica takes far more.
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

}  // namespace

class StepWire::Reactor final
    : public grpc::ClientBidiReactor<inference::AttachRequest, inference::StepBatch>,
      public std::enable_shared_from_this<Reactor> {
 public:
  Reactor(asio::io_context& io, Gate::Pass pass, Events events)
      : io_(io), pass_(std::move(pass)), events_(std::move(events)) {}

  void open(const ReplicaEndpoint& endpoint);
  void close();

  // `add` is called with the message that leaves next.
  template <typename Add>
  void send(std::size_t bytes, const Add& add) EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (unsent_.empty() || last_unsent_bytes_ >= kMessageBytes) {
        unsent_.emplace_back();
        last_unsent_bytes_ = 0;
      }
      last_unsent_bytes_ += bytes;
      add(unsent_.back());
    }
    if (std::exchange(flush_posted_, true)) return;
    asio::post(io_, [self = shared_from_this()] { self->flush(); });
  }

  [[nodiscard]] bool ended() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return ended_;
  }

  void OnReadDone(bool ok) noexcept override EXCLUDES(mutex_);
  void OnWriteDone(bool ok) noexcept override EXCLUDES(mutex_);
  void OnDone(const grpc::Status& status) noexcept override;

 private:
  void take_batches() EXCLUDES(mutex_);
  void flush() noexcept EXCLUDES(mutex_);
  void finished(const grpc::Status& status);
  [[nodiscard]] bool next_message() REQUIRES(mutex_);

  asio::io_context& io_;
  std::optional<Gate::Pass> pass_;
  grpc::ClientContext context_;
  std::shared_ptr<Reactor> self_;  // until OnDone
  std::unique_ptr<Batch> batch_;   // gRPC's while a read is out

  // The I/O thread's.
  Events events_;
  std::vector<std::unique_ptr<Batch>> taken_;
  bool flush_posted_ = false;
  bool closed_ = false;

  Mutex mutex_;
  std::vector<std::unique_ptr<Batch>> arrived_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Batch>> spare_ GUARDED_BY(mutex_);
  std::deque<inference::AttachRequest> unsent_ GUARDED_BY(mutex_);
  std::size_t last_unsent_bytes_ GUARDED_BY(mutex_) = 0;
  bool writing_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;  // no more writes
  inference::AttachRequest sending_;       // gRPC's while a write is out
};

void StepWire::Reactor::open(const ReplicaEndpoint& endpoint) {
  self_ = shared_from_this();
  endpoint.authorize(context_);
  inference::Replica::Stub(endpoint.open(ChannelUse::kSteps)).async()->Attach(&context_, this);
  batch_ = std::make_unique<Batch>();
  batch_->renew();
  AddHold();  // for writes, which begin outside of reactions; until the last read
  StartRead(batch_->message);
  StartCall();
}

void StepWire::Reactor::OnReadDone(bool ok) noexcept {
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

void StepWire::Reactor::OnWriteDone(bool ok) noexcept {
  bool write = false;
  {
    const MutexLock lock(mutex_);
    ended_ |= !ok;
    writing_ = false;
    write = next_message();
  }
  if (write) StartWrite(&sending_);
}

void StepWire::Reactor::OnDone(const grpc::Status& status) noexcept {
  // The post comes before the pass goes back: with the last pass the loop may go, too. And it takes
  // the last reference along (replica_endpoint.h says why).
  const auto pass = std::move(pass_);
  asio::post(io_, [self = std::move(self_), status] { self->finished(status); });
}

bool StepWire::Reactor::next_message() {
  if (writing_ || ended_ || unsent_.empty()) return false;
  sending_ = std::move(unsent_.front());
  unsent_.pop_front();
  writing_ = true;
  return true;
}

void StepWire::Reactor::flush() noexcept {
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

void StepWire::Reactor::take_batches() {
  {
    const MutexLock lock(mutex_);
    std::swap(arrived_, taken_);
  }
  for (const auto& batch : taken_) {
    if (!closed_) events_.came(*batch->message);
  }
  {
    const MutexLock lock(mutex_);
    for (auto& batch : taken_) {
      if (spare_.size() < kSpareBatches) spare_.push_back(std::move(batch));
    }
  }
  taken_.clear();
  if (!closed_) events_.all_came();
}

void StepWire::Reactor::finished(const grpc::Status& status) {
  if (std::exchange(closed_, true)) return;
  events_.over(status.error_code() != grpc::StatusCode::UNIMPLEMENTED);
}

void StepWire::Reactor::close() {
  if (std::exchange(closed_, true)) return;
  context_.TryCancel();
}

StepWire::StepWire(asio::io_context& io, const ReplicaEndpoint& endpoint, Gate::Pass pass,
                   Events events)
    : reactor_(std::make_shared<Reactor>(io, std::move(pass), std::move(events))) {
  reactor_->open(endpoint);
}

void StepWire::start(inference::Start&& start) {
  const std::size_t bytes = start.ByteSizeLong();
  reactor_->send(
      bytes, [&](inference::AttachRequest& message) { *message.add_starts() = std::move(start); });
}

void StepWire::cancel(std::uint64_t id) {
  reactor_->send(sizeof id, [id](inference::AttachRequest& message) { message.add_cancels(id); });
}

void StepWire::grant(std::uint64_t id, StreamCredit credit) {
  reactor_->send(sizeof id + sizeof credit, [&](inference::AttachRequest& message) {
    inference::Credit& more = *message.add_credits();
    more.set_id(id);
    more.set_deltas(credit.deltas);
    more.set_bytes(credit.bytes);
  });
}

void StepWire::close() { reactor_->close(); }

bool StepWire::ended() const { return reactor_->ended(); }

}  // namespace sluice
