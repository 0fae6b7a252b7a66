#include "load/attach_target.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "contract/wire_client.h"
#include "inference.grpc.pb.h"
#include "load/grpc_channel.h"

namespace sluice {
namespace {

constexpr std::uint32_t kAllDeltas = 1 << 30;
constexpr std::uint32_t kAllBytes = 1 << 30;
constexpr std::uint32_t kBytesOfOne = 4096;  // of a slow reader's next delta

class AttachStream;

class AttachCall final
    : private grpc::ClientBidiReactor<inference::AttachRequest, inference::StepBatch> {
 public:
  AttachCall(const TargetOptions& options, std::shared_ptr<grpc::Channel> channel)
      : channel_(std::move(channel)), stub_(inference::Replica::NewStub(channel_)) {
    TargetOptions without_deadline = options;
    without_deadline.timeout = {};
    prepare_call(without_deadline, context_);
  }
  ~AttachCall() override = default;

  [[nodiscard]] grpc::Channel& channel() noexcept { return *channel_; }
  void begin();
  void end();  // returns when the call has

  // Its id on this call; 0: the call is broken. Moves `start`'s content away.
  std::uint64_t add(AttachStream& stream, inference::Start& start);
  void grant_one(std::uint64_t id);
  void cancel(std::uint64_t id);

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  void send() REQUIRES(mutex_);
  void take(inference::StepItem& item);
  void fail_all();

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<inference::Replica::Stub> stub_;
  grpc::ClientContext context_;
  inference::StepBatch batch_;
  inference::AttachRequest sent_;  // is being written
  Mutex mutex_;
  CondVar ended_;
  inference::AttachRequest next_ GUARDED_BY(mutex_);
  bool begun_ GUARDED_BY(mutex_) = false;
  bool writing_ GUARDED_BY(mutex_) = false;
  bool broken_ GUARDED_BY(mutex_) = false;
  bool done_ GUARDED_BY(mutex_) = false;
  std::uint64_t last_id_ GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::uint64_t, AttachStream*> streams_ GUARDED_BY(mutex_);
};

class AttachStream final : public LoadStream {
 public:
  AttachStream(std::size_t index, LoadEvents& events, const TargetOptions& options,
               AttachCall& call)
      : LoadStream(index, events), options_(options), call_(call) {}

  // Whether it has ended; then finish() is due.
  bool take(const inference::StepItem& item);
  void finish() { end(outcome_); }
  void fail() {
    outcome_.error = "UNAVAILABLE";
    end(outcome_);
  }

 private:
  void start(PlannedRequest& planned) override;
  void cancel(std::uint64_t number) noexcept override {
    const MutexLock lock(mutex_);
    if (number_ == number) call_.cancel(id_);
  }
  void take_response(const inference::GenerateResponse& response, std::uint64_t id);

  const TargetOptions& options_;
  AttachCall& call_;
  Mutex mutex_;  // of the two below against cancel()
  std::uint64_t id_ = 0;
  std::uint64_t number_ = UINT64_MAX;
  inference::Start start_;
  LoadOutcome outcome_;
  std::uint32_t told_ = 0;
  bool done_ = false;
};

void AttachStream::start(PlannedRequest& planned) {
  outcome_ = {};
  told_ = 0;
  done_ = false;
  start_.Clear();
  if (const auto written = to_wire(planned.request, *start_.mutable_request()); !written) {
    outcome_.error = "INVALID_ARGUMENT";
    return end(outcome_);
  }
  start_.mutable_credit()->set_deltas(is_slow() ? 1 : kAllDeltas);
  start_.mutable_credit()->set_bytes(is_slow() ? kBytesOfOne : kAllBytes);
  if (options_.timeout.count() > 0) {
    start_.set_timeout_ms(static_cast<std::uint32_t>(options_.timeout.count()));
  }
  {
    const MutexLock lock(mutex_);
    number_ = times().number;
    id_ = call_.add(*this, start_);
    if (id_ != 0) return;
  }
  fail();
}

bool AttachStream::take(const inference::StepItem& item) {
  if (item.has_response()) take_response(item.response(), item.id());
  if (!item.has_status()) return false;
  outcome_.error = status_name(item.status().code());
  if (outcome_.error.empty() && !done_) outcome_.error = "no end";
  return true;
}

void AttachStream::take_response(const inference::GenerateResponse& response, std::uint64_t id) {
  const std::uint32_t tokens = response.completion_tokens() - told_;
  const bool has_text = !response.delta().empty();
  if (has_text || (!response.done() && tokens > 0)) {
    told_ = response.completion_tokens();
    if (receive(std::max(tokens, std::uint32_t{1}))) {
      call_.cancel(id);
    } else if (const Duration wait = pause(); wait > Duration::zero()) {
      events().after(wait, [this, id] { call_.grant_one(id); });
    }
  }
  if (!response.done()) return;
  done_ = true;
  outcome_.prompt_tokens = response.prompt_tokens();
  outcome_.cached_tokens = response.cached_tokens();
  outcome_.completion_tokens = response.completion_tokens();
  if (response.has_timings()) {
    outcome_.queued = std::chrono::microseconds(response.timings().queued_us());
  }
}

void AttachCall::begin() {
  {
    const MutexLock lock(mutex_);
    begun_ = true;
  }
  stub_->async()->Attach(&context_, this);
  AddHold();  // for the writes from other threads, until it is broken
  StartRead(&batch_);
  StartCall();
}

void AttachCall::end() {
  const MutexLock lock(mutex_);
  if (!begun_) return;
  context_.TryCancel();
  while (!done_) ended_.wait(mutex_);
}

std::uint64_t AttachCall::add(AttachStream& stream, inference::Start& start) {
  const MutexLock lock(mutex_);
  if (broken_) return 0;
  start.set_id(++last_id_);
  streams_.emplace(last_id_, &stream);
  next_.add_starts()->Swap(&start);
  send();
  return last_id_;
}

void AttachCall::grant_one(std::uint64_t id) {
  const MutexLock lock(mutex_);
  if (broken_ || !streams_.contains(id)) return;
  inference::Credit& credit = *next_.add_credits();
  credit.set_id(id);
  credit.set_deltas(1);
  credit.set_bytes(kBytesOfOne);
  send();
}

void AttachCall::cancel(std::uint64_t id) {
  const MutexLock lock(mutex_);
  if (broken_ || !streams_.contains(id)) return;
  next_.add_cancels(id);
  send();
}

// What comes while a message is being written goes into the next.
void AttachCall::send() {
  if (std::exchange(writing_, true)) return;
  sent_.Clear();
  sent_.Swap(&next_);
  StartWrite(&sent_);
}

void AttachCall::OnWriteDone(bool ok) {
  const MutexLock lock(mutex_);
  writing_ = false;
  const bool more = next_.starts_size() > 0 || next_.cancels_size() > 0 || next_.credits_size() > 0;
  if (ok && more && !broken_) send();
}

void AttachCall::OnReadDone(bool ok) {
  if (!ok) {
    fail_all();
    RemoveHold();
    return;
  }
  for (inference::StepItem& item : *batch_.mutable_items()) take(item);
  StartRead(&batch_);
}

// Only here do streams leave the table, so that a stream found in it is still this request's.
void AttachCall::take(inference::StepItem& item) {
  AttachStream* stream = nullptr;
  {
    const MutexLock lock(mutex_);
    const auto found = streams_.find(item.id());
    if (found == streams_.end()) return;
    stream = found->second;
  }
  if (!stream->take(item)) return;
  {
    const MutexLock lock(mutex_);
    streams_.erase(item.id());
  }
  stream->finish();
}

void AttachCall::fail_all() {
  std::unordered_map<std::uint64_t, AttachStream*> left;
  {
    const MutexLock lock(mutex_);
    broken_ = true;
    left.swap(streams_);
  }
  for (const auto& [id, stream] : left) stream->fail();
}

void AttachCall::OnDone(const grpc::Status&) {
  const MutexLock lock(mutex_);
  done_ = true;
  ended_.notify_all();
}

class AttachTarget final : public LoadTarget {
 public:
  explicit AttachTarget(const TargetOptions& options) : options_(options) {
    for (std::uint32_t i = 0; i < options.channels; ++i)
      calls_.push_back(std::make_unique<AttachCall>(options, make_load_channel(options, false)));
  }
  ~AttachTarget() override { stop(); }

  Result<void> connect() override {
    for (const auto& call : calls_) {
      if (auto connected = wait_connected(call->channel(), options_); !connected) return connected;
    }
    for (const auto& call : calls_) call->begin();
    return {};
  }

  void stop() noexcept override {
    for (const auto& call : calls_) call->end();
  }

  std::unique_ptr<LoadStream> make_stream(std::size_t index, LoadEvents& events) override {
    return std::make_unique<AttachStream>(index, events, options_, *calls_[index % calls_.size()]);
  }

 private:
  const TargetOptions options_;
  std::vector<std::unique_ptr<AttachCall>> calls_;
};

}  // namespace

std::unique_ptr<LoadTarget> make_attach_target(const TargetOptions& options) {
  return std::make_unique<AttachTarget>(options);
}

}  // namespace sluice
