#include "replica/attach.h"

#include <google/protobuf/arena.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
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
#include "replica/parse_message.h"
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

class AttachCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, inference::StepBatch>,
                         public std::enable_shared_from_this<AttachCall> {
 public:
  AttachCall(const ReplicaContext& replica, grpc::CallbackServerContext& call)
      : replica_(replica),
        call_(call),
        writer_(std::string(replica.model.name), replica.limits, replica.clock, replica.metrics) {
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

  void break_off(Error error) EXCLUDES(mutex_);
  void take_in() EXCLUDES(mutex_);
  [[nodiscard]] bool pause() EXCLUDES(mutex_);
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
  std::shared_ptr<AttachCall> self_;      // until OnDone
  std::shared_ptr<const ApiKey> caller_;  // as it was when the call began
  std::shared_ptr<WireQueue> wire_;
  grpc::ByteBuffer incoming_;  // gRPC's while a read is out
  // What take_in has not yet had of the last message: starts from next_start_ on, then the rest.
  inference::AttachRequest message_;
  int next_start_ = 0;

  Mutex mutex_;
  StepWriter writer_ GUARDED_BY(mutex_);
  // A batch lives here from its filling until it is written. An arena, because Clear() would free
  // every nested message. Made for the first batch: a call without requests costs little.
  std::vector<char> arena_block_ GUARDED_BY(mutex_);
  std::optional<google::protobuf::Arena> arena_ GUARDED_BY(mutex_);
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
  auto known = caller_of(call_, replica_.keys);
  if (known && replica_.calls.closed()) known = tl::unexpected(draining());
  if (known) {
    caller_ = std::move(*known);
    StartSendInitialMetadata();
    StartRead(&incoming_);
    return;
  }
  break_off(std::move(known.error()));
  pump();
}

void AttachCall::break_off(Error error) {
  MutexLock lock(mutex_);
  failure_ = std::move(error);
}

void AttachCall::OnReadDone(bool ok) noexcept {
  if (ok) {
    // Which request was at fault can't be known, so all end.
    auto parsed = parse_message(incoming_, replica_.limits, message_);
    incoming_.Clear();
    parsed ? take_in() : break_off(std::move(parsed.error()));
  } else {
    if (call_.IsCancelled()) abandon();
    MutexLock lock(mutex_);
    half_closed_ = true;
  }
  pump();
}

// What was read, then the next; or as much of it as there is room for, and the rest when what it
// gave rise to has been written.
void AttachCall::take_in() {
  while (next_start_ < message_.starts_size()) {
    if (pause()) return;
    start_request(*message_.mutable_starts(next_start_++));
  }
  {
    MutexLock lock(mutex_);
    for (const WireId id : message_.cancels()) writer_.cancel(id);
    for (const inference::Credit& credit : message_.credits())
      writer_.grant(credit.id(), credit_from_wire(credit));
  }
  inference::AttachRequest().Swap(&message_);
  next_start_ = 0;
  if (!pause()) StartRead(&incoming_);
}

// Whether no more is taken in now. Where too many endings are unsent, a write is out or about to
// be, and its end goes on.
bool AttachCall::pause() {
  MutexLock lock(mutex_);
  reads_paused_ = !may_read();
  return reads_paused_;
}

bool AttachCall::may_read() {
  return !cancelled_ && !failure_ && !finished_ && writer_.unsent_endings() < kMaxUnsentEndings;
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
  if (auto allowed = may_use(*caller_, request->model); !allowed)
    return tl::unexpected(std::move(allowed.error()));
  if (auto valid = validate(*request, replica_.limits, replica_.model); !valid)
    return tl::unexpected(std::move(valid.error()));
  keep_apart(*caller_, *request);

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
  {
    MutexLock lock(mutex_);
    action = next();
    batch = batch_;
    failure = failure_;
  }
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
  if (writer_.idle()) {
    finished_ = half_closed_;
    return finished_ ? Action::kFinish : Action::kNothing;
  }
  if (!arena_) {
    arena_block_.resize(kArenaBlockBytes);
    arena_.emplace(arena_options(arena_block_));
  }
  arena_->Reset();
  batch_ = google::protobuf::Arena::CreateMessage<inference::StepBatch>(&*arena_);
  if (writer_.fill(*wire_, *batch_)) {
    to_wire(replica_.admission.load(), *batch_->mutable_load());
    writing_ = true;
    return Action::kWrite;
  }
  return Action::kNothing;
}

void AttachCall::OnWriteDone(bool ok) noexcept {
  bool go_on = false;
  {
    MutexLock lock(mutex_);
    writing_ = false;
    writer_.written();
    go_on = reads_paused_ && may_read();
    if (go_on) reads_paused_ = false;
  }
  if (!ok) abandon();
  if (go_on) take_in();
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

grpc::ServerBidiReactor<grpc::ByteBuffer, inference::StepBatch>* serve_attach(
    const ReplicaContext& replica, grpc::CallbackServerContext& call) {
  const auto reactor = std::make_shared<AttachCall>(replica, call);
  reactor->start();
  return reactor.get();
}

}  // namespace sluice
