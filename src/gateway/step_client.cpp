#include "gateway/step_client.h"

#include <algorithm>
#include <random>
#include <utility>

#include "gateway/stream_core.h"
#include "inference.pb.h"

namespace sluice {
namespace {

// A third of the age at which a replica closes connections by default.
constexpr std::chrono::minutes kMostAge{20};
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kMostPause{2'000};

std::chrono::milliseconds with_jitter(std::chrono::milliseconds pause) {
  std::minstd_rand random{std::random_device{}()};
  return pause * std::uniform_int_distribution<int>(75, 125)(random) / 100;
}

}  // namespace

StepClient::StepClient(const StepCall::Surroundings& around, ReplicaId replica,
                       std::shared_ptr<const ReplicaEndpoint> endpoint)
    : around_(around), replica_(replica), endpoint_(std::move(endpoint)), timer_(around.io) {}

void StepClient::close() {
  closed_ = true;
  timer_.cancel();
  const auto call = std::move(call_);
  const auto retiring = std::move(retiring_);
}

bool StepClient::idle() const { return (!call_ || call_->idle()) && retiring_.empty(); }

void StepClient::start(std::shared_ptr<ReplicaStream::Core> core, inference::Start&& start) {
  if (call_ && (call_->ended() || call_->age() > kMostAge)) {
    retiring_.push_back(std::move(call_));
    retiring_.back()->retire();
  }
  if (!call_) attach();
  if (!call_) return core->end(fail(Code::kUnavailable, "the gateway is shutting down"));
  call_->start(std::move(core), std::move(start));
}

void StepClient::attach() {
  timer_.cancel();
  auto pass = closed_ ? std::nullopt : around_.calls.enter();
  if (!pass) return;
  // The call is made before it can be over: events come by the loop.
  const auto made = std::make_shared<const StepCall*>(nullptr);
  call_ = std::make_unique<StepCall>(around_, replica_, *endpoint_, std::move(*pass),
                                     [this, made] { over(*made); });
  *made = call_.get();
}

void StepClient::over(const StepCall* call) {
  const auto found = std::find_if(retiring_.begin(), retiring_.end(),
                                  [call](const auto& one) { return one.get() == call; });
  if (found != retiring_.end()) {
    const auto gone = std::move(*found);
    retiring_.erase(found);
    return;
  }
  const auto gone = std::move(call_);
  if (gone->served()) pause_ = {};
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
