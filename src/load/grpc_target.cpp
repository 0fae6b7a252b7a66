#include "load/grpc_target.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "contract/wire_client.h"
#include "inference.grpc.pb.h"
#include "load/grpc_channel.h"

namespace sluice {
namespace {

using Reactor = grpc::ClientReadReactor<inference::GenerateResponse>;
constexpr std::chrono::milliseconds kNap{200};
using Stubs = std::vector<std::unique_ptr<inference::LLM::Stub>>;

class GrpcStream final : public LoadStream, private Reactor {
 public:
  GrpcStream(std::size_t index, LoadEvents& events, const TargetOptions& options,
             const Stubs& stubs, const Stubs& tight)
      : LoadStream(index, events),
        options_(options),
        stub_(*stubs[index % stubs.size()]),
        tight_(*tight[index % tight.size()]) {}

 private:
  void start(PlannedRequest& planned) override {
    request_.Clear();
    outcome_ = {};
    told_ = 0;
    done_ = cancelled_ = false;
    if (const auto written = to_wire(planned.request, request_); !written) {
      outcome_.error = "INVALID_ARGUMENT";  // of a prompts file that is not UTF-8
      return end(outcome_);
    }
    {
      const MutexLock lock(mutex_);
      context_.emplace();
      prepare_call(options_, *context_);
      number_ = times().number;
    }
    (is_slow() ? tight_ : stub_).async()->Generate(&*context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void cancel(std::uint64_t number) noexcept override {
    const MutexLock lock(mutex_);
    if (!context_ || number_ != number) return;
    cancelled_ = true;
    context_->TryCancel();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    // the last message's count has the end-of-generation token in it, which nobody sees
    const bool counts = !response_.delta().empty() || !response_.done();
    const std::uint32_t tokens = response_.completion_tokens() - told_;
    if (counts && (tokens > 0 || !response_.delta().empty())) {
      told_ = response_.completion_tokens();
      if (receive(std::max(tokens, std::uint32_t{1}))) context_->TryCancel();
    }
    if (response_.done()) note_end();
    const Duration wait = pause();
    if (wait == Duration::zero() || done_) return StartRead(&response_);
    AddHold();
    read_after(wait);
  }

  // In short naps: whoever cancels does not wait for the end of a long one.
  void read_after(Duration wait) {
    if (wait <= Duration::zero() || cancelled_) {
      StartRead(&response_);
      return RemoveHold();
    }
    const Duration nap = std::min<Duration>(wait, kNap);
    events().after(nap, [this, left = wait - nap] { read_after(left); });
  }

  void note_end() {
    done_ = true;
    outcome_.prompt_tokens = response_.prompt_tokens();
    outcome_.cached_tokens = response_.cached_tokens();
    outcome_.completion_tokens = response_.completion_tokens();
    if (response_.has_timings()) {
      outcome_.queued = std::chrono::microseconds(response_.timings().queued_us());
    }
  }

  void OnDone(const grpc::Status& status) override {
    if (!status.ok()) {
      outcome_.error = status_name(status.error_code());
    } else if (!done_) {
      outcome_.error = "no end";  // of a server that breaks the contract
    }
    {
      const MutexLock lock(mutex_);
      context_.reset();
    }
    end(outcome_);
  }

  const TargetOptions& options_;
  inference::LLM::Stub& stub_;
  inference::LLM::Stub& tight_;
  Mutex mutex_;  // of the context against cancel()
  std::optional<grpc::ClientContext> context_;
  std::uint64_t number_ = 0;
  inference::GenerateRequest request_;
  inference::GenerateResponse response_;
  LoadOutcome outcome_;
  std::uint32_t told_ = 0;
  bool done_ = false;
  std::atomic<bool> cancelled_ = false;
};

class GrpcTarget final : public LoadTarget {
 public:
  explicit GrpcTarget(const TargetOptions& options) : options_(options) {
    for (std::uint32_t i = 0; i < options.channels; ++i) {
      channels_.push_back(make_load_channel(options, false));
      stubs_.push_back(inference::LLM::NewStub(channels_.back()));
      tight_.push_back(inference::LLM::NewStub(make_load_channel(options, true)));
    }
  }

  Result<void> connect() override {
    for (const auto& channel : channels_) {
      if (auto connected = wait_connected(*channel, options_); !connected) return connected;
    }
    return {};
  }

  void stop() noexcept override {}  // gRPC's own threads name no stream that is idle

  std::unique_ptr<LoadStream> make_stream(std::size_t index, LoadEvents& events) override {
    return std::make_unique<GrpcStream>(index, events, options_, stubs_, tight_);
  }

 private:
  const TargetOptions options_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  Stubs stubs_;
  Stubs tight_;  // connects when it is first used
};

}  // namespace

std::unique_ptr<LoadTarget> make_grpc_target(const TargetOptions& options) {
  return std::make_unique<GrpcTarget>(options);
}

}  // namespace sluice
