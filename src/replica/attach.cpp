#include "replica/attach.h"

#include <google/protobuf/arena.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "access/keys.h"
#include "base/mutex.h"
#include "contract/wire.h"
#include "inference.pb.h"
#include "replica/call.h"
#include "replica/context.h"
#include "replica/preparer.h"
#include "replica/replica_metrics.h"
#include "replica/step_writer.h"

namespace sluice {
namespace {

// Holds a step of about 150 requests; what does not fit is allocated for that step in blocks of
// this size.
constexpr std::size_t kArenaBlockBytes = 64 << 10;

google::protobuf::ArenaOptions arena_options(std::vector<char>& block) {
  google::protobuf::ArenaOptions options;
  options.start_block_size = options.max_block_size = kArenaBlockBytes;
  options.initial_block = block.data();
  options.initial_block_size = block.size();
  return options;
}

StreamReader::Credit credit_from_wire(const inference::Credit& credit) noexcept {
  return {credit.deltas(), credit.bytes()};
}

class AttachCall final
    : public grpc::ServerBidiReactor<inference::AttachRequest, inference::StepBatch>,
      public std::enable_shared_from_this<AttachCall> {
 public:
  AttachCall(const ReplicaContext& replica, grpc::CallbackServerContext& call)
      : replica_(replica),
        call_(call),
        writer_(std::string(replica.model.name), replica.limits.max_attached_requests,
                replica.clock, replica.metrics),
        arena_(arena_options(arena_block_)) {
    replica_.metrics.attach_open.add(1);
  }

  void start();

  void OnReadDone(bool ok) noexcept override;
  void OnWriteDone(bool ok) noexcept override;
  void OnCancel() noexcept override;
  void OnDone() noexcept override;

 private:
  // What is to be sent on the call, decided under the mutex and done without it.
  enum class Action { kNothing, kWrite, kFinish };

  void apply(inference::AttachRequest& message) EXCLUDES(mutex_);
  void start_request(inference::Start& start) EXCLUDES(mutex_);
  [[nodiscard]] Result<GenerationPreparation> admit(inference::Start& start) EXCLUDES(mutex_);
  void prepared(WireId id, StepWriter::Serial serial, Result<StreamReader> stream) noexcept
      EXCLUDES(mutex_);
  void pump() noexcept EXCLUDES(mutex_);
  [[nodiscard]] Action next() REQUIRES(mutex_);
  [[nodiscard]] bool may_read() REQUIRES(mutex_);
  void abandon() EXCLUDES(mutex_);

  const ReplicaContext& replica_;
  grpc::CallbackServerContext& call_;
  std::shared_ptr<AttachCall> self_;  // until OnDone
  std::shared_ptr<WireQueue> wire_;
  inference::AttachRequest incoming_;  // gRPC's while a read is out

  Mutex mutex_;
  StepWriter writer_ GUARDED_BY(mutex_);
  // A batch lives here from its filling until it is written. An arena, because Clear() would free
  // every nested message.
  std::vector<char> arena_block_ = std::vector<char>(kArenaBlockBytes);
  google::protobuf::Arena arena_ GUARDED_BY(mutex_);
  inference::StepBatch* batch_ GUARDED_BY(mutex_) = nullptr;
  std::optional<Error> failure_ GUARDED_BY(mutex_);
  bool writing_ GUARDED_BY(mutex_) = false;
  bool reads_paused_ GUARDED_BY(mutex_) = false;
  bool half_closed_ GUARDED_BY(mutex_) = false;
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
};

void AttachCall::start() {
  self_ = shared_from_this();
  wire_ = std::make_shared<WireQueue>([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->pump();
  });
  auto known = authenticate(call_, replica_.keys);
  if (known && replica_.calls.closed()) known = tl::unexpected(draining());
  if (known) {
    StartSendInitialMetadata();
    StartRead(&incoming_);
    return;
  }
  {
    MutexLock lock(mutex_);
    failure_ = std::move(known.error());
  }
  pump();
}

void AttachCall::OnReadDone(bool ok) noexcept {
  if (ok) {
    apply(incoming_);
    inference::AttachRequest().Swap(&incoming_);
  } else if (call_.IsCancelled()) {
    abandon();
  }
  bool read_on = false;
  {
    MutexLock lock(mutex_);
    half_closed_ |= !ok;
    read_on = may_read();
    reads_paused_ = !read_on && !half_closed_;
  }
  if (read_on) StartRead(&incoming_);
  pump();
}

bool AttachCall::may_read() {
  return !half_closed_ && !cancelled_ && !finished_ && writer_.unsent_endings() < kMaxUnsentEndings;
}

void AttachCall::apply(inference::AttachRequest& message) {
  for (inference::Start& start : *message.mutable_starts()) start_request(start);
  MutexLock lock(mutex_);
  for (const WireId id : message.cancels()) writer_.cancel(id);
  for (const inference::Credit& credit : message.credits())
    writer_.grant(credit.id(), credit_from_wire(credit));
}

void AttachCall::start_request(inference::Start& start) {
  const WireId id = start.id();
  auto job = admit(start);
  if (job) return replica_.preparer.submit(std::move(*job));
  MutexLock lock(mutex_);
  if (!cancelled_) writer_.refuse(id, std::move(job.error()));
}

Result<GenerationPreparation> AttachCall::admit(inference::Start& start) {
  {
    MutexLock lock(mutex_);
    if (auto room = writer_.check_room(start.id()); !room)
      return tl::unexpected(std::move(room.error()));
  }
  const std::size_t bytes = start.request().ByteSizeLong();
  if (auto fits = check_message_bytes(bytes, replica_.limits); !fits)
    return tl::unexpected(std::move(fits.error()));
  auto request = from_wire(std::move(*start.mutable_request()));
  if (!request) return tl::unexpected(std::move(request.error()));
  if (auto valid = validate(*request, replica_.limits, replica_.model); !valid)
    return tl::unexpected(std::move(valid.error()));

  auto pass = replica_.calls.enter();
  if (!pass) return tl::unexpected(draining());
  const auto choices = static_cast<std::uint32_t>(request->n);
  auto ticket = replica_.admission.reserve(choices);
  if (!ticket) return tl::unexpected(std::move(ticket.error()));

  Claim claim;
  const ClaimWatch watch = claim.watch();
  MutexLock lock(mutex_);
  if (cancelled_) return fail(Code::kCancelled, "the call was cancelled");
  const StepWriter::Serial serial = writer_.open({.id = start.id(),
                                                  .choices = choices,
                                                  .credit = credit_from_wire(start.credit()),
                                                  .pass = std::move(*pass),
                                                  .claim = std::move(claim)});
  return GenerationPreparation{
      .input = {.request = std::move(*request), .wire_id = start.id(), .wire = wire_},
      .ticket = std::move(*ticket),
      .deadline = start.has_timeout_ms()
                      ? replica_.clock.now() + std::chrono::milliseconds(start.timeout_ms())
                      : kForever,
      .claim = watch,
      .done = [weak = weak_from_this(), id = start.id(), serial](Result<StreamReader> stream) {
        if (const auto self = weak.lock()) self->prepared(id, serial, std::move(stream));
      }};
}

void AttachCall::prepared(WireId id, StepWriter::Serial serial,
                          Result<StreamReader> stream) noexcept {
  {
    MutexLock lock(mutex_);
    writer_.prepared(id, serial, std::move(stream));
  }
  pump();
}

void AttachCall::pump() noexcept {
  Action action = Action::kNothing;
  const inference::StepBatch* batch = nullptr;
  std::optional<Error> failure;
  bool read_on = false;
  {
    MutexLock lock(mutex_);
    action = next();
    batch = batch_;
    failure = failure_;
    // A batch took the endings that reading waited for.
    read_on = reads_paused_ && may_read();
    if (read_on) reads_paused_ = false;
  }
  if (read_on) StartRead(&incoming_);
  switch (action) {
    case Action::kNothing:
      break;
    case Action::kWrite:
      StartWrite(batch);
      break;
    case Action::kFinish:
      Finish(failure ? failed(call_, *failure) : grpc::Status::OK);
      break;
  }
}

AttachCall::Action AttachCall::next() {
  if (writing_ || finished_) return Action::kNothing;
  if (cancelled_ || failure_) {
    if (!failure_) failure_ = cancelled(kForever, replica_.clock);
    finished_ = true;
    return Action::kFinish;
  }
  arena_.Reset();
  batch_ = google::protobuf::Arena::CreateMessage<inference::StepBatch>(&arena_);
  if (writer_.fill(*wire_, *batch_)) {
    to_wire(replica_.admission.load(), *batch_->mutable_load());
    writing_ = true;
    return Action::kWrite;
  }
  if (!half_closed_ || !writer_.idle()) return Action::kNothing;
  finished_ = true;
  return Action::kFinish;
}

void AttachCall::OnWriteDone(bool ok) noexcept {
  {
    MutexLock lock(mutex_);
    writing_ = false;
    writer_.written();
  }
  if (!ok) abandon();
  pump();
}

void AttachCall::OnCancel() noexcept {
  abandon();
  pump();
}

void AttachCall::abandon() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  writer_.clear();
}

void AttachCall::OnDone() noexcept {
  std::optional<Code> code;
  {
    MutexLock lock(mutex_);
    if (failure_) code = failure_->code;
    writer_.clear();
  }
  replica_.metrics.attach_open.add(-1);
  replica_.metrics.count_call(Method::kAttach, code);
  const auto self = std::move(self_);
}

}  // namespace

grpc::ServerBidiReactor<inference::AttachRequest, inference::StepBatch>* serve_attach(
    const ReplicaContext& replica, grpc::CallbackServerContext& call) {
  const auto reactor = std::make_shared<AttachCall>(replica, call);
  reactor->start();
  return reactor.get();
}

}  // namespace sluice
