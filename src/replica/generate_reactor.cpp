#include "replica/generate_reactor.h"

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
#include "replica/parse_message.h"
#include "replica/preparer.h"
#include "replica/replica_metrics.h"
#include "replica/stuck_calls.h"
#include "stream/token_stream.h"
#include "stream/wire_queue.h"

namespace sluice {
namespace {

class GenerateReactor final : public grpc::ServerWriteReactor<inference::GenerateResponse>,
                              public std::enable_shared_from_this<GenerateReactor> {
 public:
  GenerateReactor(const ReplicaContext& replica, StuckCalls& calls,
                  grpc::CallbackServerContext& call)
      : replica_(replica), call_(call), stuck_(calls, call), arrived_at_(replica.clock.now()) {
    replica_.metrics.generate_open.add(1);
  }

  void start(const grpc::ByteBuffer& bytes);

  void OnWriteDone(bool ok) noexcept override;
  void OnCancel() noexcept override;
  void OnDone() noexcept override;

 private:
  // What is to be done on the call, decided under the mutex and done without it.
  enum class Action { kNothing, kWrite, kWriteAndFinish, kFinish };

  [[nodiscard]] Result<GenerationPreparation> admit(const grpc::ByteBuffer& bytes);
  void prepared(Result<StreamReader> stream) noexcept EXCLUDES(mutex_);
  void announce() EXCLUDES(mutex_);
  void pump() noexcept EXCLUDES(mutex_);
  [[nodiscard]] Action next() REQUIRES(mutex_);
  void pull() REQUIRES(mutex_);
  [[nodiscard]] Action next_message() REQUIRES(mutex_);
  [[nodiscard]] Action finish(std::optional<Error> failure) REQUIRES(mutex_);
  void abandon() REQUIRES(mutex_);
  void count_message(const Delta& delta) REQUIRES(mutex_);

  // A request that is admitted: where its deltas come from and how they are written.
  struct Stream {
    StreamReader reader;
    ResponseEncoder encoder;
  };

  const ReplicaContext& replica_;
  grpc::CallbackServerContext& call_;
  StuckCalls::Entry stuck_;
  const TimePoint arrived_at_;
  TimePoint deadline_ = kForever;
  std::shared_ptr<GenerateReactor> self_;  // until OnDone
  std::optional<Gate::Pass> pass_;
  std::shared_ptr<WireQueue> wire_;
  std::uint32_t choices_ = 1;

  Mutex mutex_;
  std::optional<Claim> claim_ GUARDED_BY(mutex_);  // while it is being prepared
  std::optional<Stream> stream_ GUARDED_BY(mutex_);
  // Taken from the stream; those before next_delta_ are written.
  std::vector<Delta> deltas_ GUARDED_BY(mutex_);
  std::size_t next_delta_ GUARDED_BY(mutex_) = 0;
  // Pointers, for a call that is open has neither, and there are thousands of them.
  std::unique_ptr<StreamEnd> end_ GUARDED_BY(mutex_);  // comes with the last of deltas_
  std::unique_ptr<Error> failure_ GUARDED_BY(mutex_);
  bool sending_ GUARDED_BY(mutex_) = false;  // metadata or a message: nobody else may send
  bool id_sent_ GUARDED_BY(mutex_) = false;
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool first_sent_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
  // Made by whoever sets sending_ or finished_, then gRPC's until OnWriteDone or OnDone.
  std::unique_ptr<inference::GenerateResponse> message_;
};

void GenerateReactor::start(const grpc::ByteBuffer& bytes) {
  self_ = shared_from_this();
  Result<GenerationPreparation> job = admit(bytes);
  if (job) {
    replica_.preparer.submit(std::move(*job));
  } else {
    prepared(tl::unexpected(std::move(job.error())));
  }
}

Result<GenerationPreparation> GenerateReactor::admit(const grpc::ByteBuffer& bytes) {
  const auto caller = caller_of(call_, replica_.keys);
  if (!caller) return tl::unexpected(caller.error());
  inference::GenerateRequest wire_request;
  if (auto parsed = parse_message(bytes, replica_.limits, wire_request); !parsed)
    return tl::unexpected(std::move(parsed.error()));
  auto priority = priority_of(call_);
  if (!priority) return tl::unexpected(std::move(priority.error()));
  auto request = from_wire(std::move(wire_request));
  if (!request) return tl::unexpected(std::move(request.error()));
  if (*priority) request->priority = **priority;
  if (auto allowed = may_use(**caller, request->model); !allowed)
    return tl::unexpected(std::move(allowed.error()));
  if (auto valid = validate(*request, replica_.limits, replica_.model); !valid)
    return tl::unexpected(std::move(valid.error()));
  keep_apart(**caller, *request);

  auto pass = replica_.calls.enter();
  if (!pass) return tl::unexpected(draining());
  pass_.emplace(std::move(*pass));
  choices_ = static_cast<std::uint32_t>(request->n);
  auto ticket = replica_.admission.reserve(choices_);
  if (!ticket) return tl::unexpected(std::move(ticket.error()));

  deadline_ = deadline_of(call_, replica_.clock);
  const auto weak = weak_from_this();
  wire_ = std::make_shared<WireQueue>([weak] {
    if (const auto self = weak.lock()) self->pump();
  });
  MutexLock lock(mutex_);
  claim_.emplace();
  return GenerationPreparation{
      .input = {.request = std::move(*request), .wire_id = 0, .wire = wire_},
      .ticket = std::move(*ticket),
      .deadline = deadline_,
      .claim = claim_->watch(),
      .done = [weak](Result<StreamReader> stream) {
        if (const auto self = weak.lock()) self->prepared(std::move(stream));
      }};
}

void GenerateReactor::prepared(Result<StreamReader> stream) noexcept {
  bool admitted = false;
  {
    MutexLock lock(mutex_);
    claim_.reset();
    if (cancelled_ || finished_) return;
    if (stream) {
      ResponseEncoder encoder(std::string(replica_.model.name), stream->prompt_tokens(), choices_);
      stream_.emplace(Stream{std::move(*stream), std::move(encoder)});
      sending_ = admitted = true;
    } else {
      failure_ = std::make_unique<Error>(std::move(stream.error()));
    }
  }
  if (admitted) announce();
  pump();
}

// Headers go out as soon as the request is admitted: a proxy and a client see that it lives. Not
// before: a refusal without headers is one that gRPC's own retry may repeat. A header of ours would
// cost each stream 0.9 KB as long as it is open (gRPC 1.51), so only a given request id is one.
void GenerateReactor::announce() {
  const auto request_id = given_request_id(call_);
  if (request_id) call_.AddInitialMetadata("x-request-id", *request_id);
  StartSendInitialMetadata();
  MutexLock lock(mutex_);
  id_sent_ = request_id.has_value();
  sending_ = false;
}

void GenerateReactor::pump() noexcept {
  Action action = Action::kNothing;
  std::optional<Error> failure;
  bool id_sent = false;
  {
    MutexLock lock(mutex_);
    action = next();
    if (action == Action::kFinish) failure = *failure_;
    id_sent = id_sent_;
  }
  const bool ends = action == Action::kFinish || action == Action::kWriteAndFinish;
  if (ends && !id_sent) end_with_request_id(call_);
  if (action != Action::kNothing) stuck_.given();
  switch (action) {
    case Action::kNothing:
      break;
    case Action::kWrite:
      StartWrite(message_.get());
      break;
    case Action::kWriteAndFinish:
      StartWriteAndFinish(message_.get(), grpc::WriteOptions(), grpc::Status::OK);
      break;
    case Action::kFinish:
      Finish(failed(call_, *failure));
      break;
  }
}

GenerateReactor::Action GenerateReactor::next() {
  if (sending_ || finished_) return Action::kNothing;
  if (cancelled_) return finish(cancelled(deadline_, replica_.clock));
  if (failure_) return finish(std::move(*failure_));
  if (!stream_) return Action::kNothing;
  if (next_delta_ == deltas_.size() && !end_) pull();
  return next_message();
}

// Nothing here keeps its capacity: a stream that waits holds as little memory as it can.
void GenerateReactor::pull() {
  std::vector<WireId> marks;
  wire_->take(marks);
  std::vector<Delta> taken;
  auto credit = StreamReader::Credit::unlimited();
  if (auto end = stream_->reader.take(credit, taken))
    end_ = std::make_unique<StreamEnd>(std::move(*end));
  deltas_ = std::move(taken);
  next_delta_ = 0;
}

GenerateReactor::Action GenerateReactor::next_message() {
  const bool has_delta = next_delta_ < deltas_.size();
  if (has_delta || end_) message_ = std::make_unique<inference::GenerateResponse>();
  if (has_delta) {
    Delta& delta = deltas_[next_delta_++];
    count_message(delta);
    stream_->encoder.encode(std::move(delta), *message_);
  }
  const bool last = end_ && next_delta_ == deltas_.size();
  if (last && end_->has_value()) {
    stream_->encoder.encode_end(**end_, *message_);
    static_cast<void>(finish(std::nullopt));
    return Action::kWriteAndFinish;
  }
  if (has_delta) {
    sending_ = true;
    return Action::kWrite;
  }
  return last ? finish(end_->error()) : Action::kNothing;
}

GenerateReactor::Action GenerateReactor::finish(std::optional<Error> failure) {
  finished_ = true;
  failure_ = failure ? std::make_unique<Error>(std::move(*failure)) : nullptr;
  abandon();
  return Action::kFinish;
}

void GenerateReactor::abandon() {
  claim_.reset();
  stream_.reset();
  deltas_.clear();
  next_delta_ = 0;
  end_.reset();
}

void GenerateReactor::count_message(const Delta& delta) {
  OutputMetrics& metrics = replica_.metrics.generate;
  if (!std::exchange(first_sent_, true)) {
    metrics.first_seconds.observe(
        std::chrono::duration<double>(replica_.clock.now() - arrived_at_).count());
  }
  metrics.messages.add();
  metrics.items.add();
  metrics.tokens.add(delta.tokens);
  metrics.bytes.add(static_cast<double>(delta.bytes.size()));
}

void GenerateReactor::OnWriteDone(bool ok) noexcept {
  stuck_.taken();
  {
    MutexLock lock(mutex_);
    sending_ = false;
    message_.reset();
    if (!ok) {
      cancelled_ = true;
      abandon();
    }
  }
  pump();
}

void GenerateReactor::OnCancel() noexcept {
  {
    MutexLock lock(mutex_);
    cancelled_ = true;
    abandon();
  }
  pump();
}

void GenerateReactor::OnDone() noexcept {
  stuck_.leave();
  std::optional<Code> code;
  {
    MutexLock lock(mutex_);
    if (failure_) code = failure_->code;
  }
  replica_.metrics.generate_open.add(-1);
  replica_.metrics.count_call(Method::kGenerate, code);
  pass_.reset();
  const auto self = std::move(self_);
}

}  // namespace

grpc::ServerWriteReactor<inference::GenerateResponse>* serve_generate(
    const ReplicaContext& replica, StuckCalls& calls, grpc::CallbackServerContext& call,
    const grpc::ByteBuffer& bytes) {
  const auto reactor = std::make_shared<GenerateReactor>(replica, calls, call);
  reactor->start(bytes);
  return reactor.get();
}

}  // namespace sluice
