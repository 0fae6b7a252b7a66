#include "replica/watch_load.h"

#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/alarm.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "access/keys.h"
#include "base/concat.h"
#include "base/mutex.h"
#include "contract/wire.h"
#include "inference.pb.h"
#include "replica/call.h"
#include "replica/context.h"
#include "replica/parse_message.h"
#include "replica/replica_metrics.h"
#include "replica/watch_bound.h"
#include "scheduler/admission.h"

namespace sluice {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr std::uint32_t kLeastIntervalMs = 10;
constexpr std::uint32_t kUsualIntervalMs = 200;

class LoadWatch final : public grpc::ServerWriteReactor<inference::Load>,
                        public std::enable_shared_from_this<LoadWatch> {
 public:
  LoadWatch(const ReplicaContext& replica, WatchBound& bound, grpc::CallbackServerContext& call)
      : replica_(replica), bound_(bound), call_(call) {}

  void start(const grpc::ByteBuffer& bytes) {
    self_ = shared_from_this();
    auto interval = check(bytes);
    if (!interval) {
      {
        MutexLock lock(mutex_);
        finished_ = true;
        code_ = interval.error().code;
      }
      end_with_request_id(call_);
      Finish(failed(call_, interval.error()));
      return;
    }
    interval_ = *interval;
    tick();
  }

  void OnWriteDone(bool ok) noexcept override {
    bool over = false;
    {
      MutexLock lock(mutex_);
      writing_ = false;
      over = cancelled_ || !ok;
    }
    over ? end() : wait();
  }

  void OnCancel() noexcept override { end(); }

  void OnDone() noexcept override {
    std::optional<Code> code;
    {
      MutexLock lock(mutex_);
      code = code_;
    }
    replica_.metrics.count_call(Method::kWatchLoad, code);
    const auto self = std::move(self_);
  }

 private:
  [[nodiscard]] Result<std::chrono::milliseconds> check(const grpc::ByteBuffer& bytes) {
    if (auto known = authenticate(call_, replica_.keys); !known)
      return tl::unexpected(std::move(known.error()));
    inference::WatchLoadRequest request;
    if (auto parsed = parse_message(bytes, replica_.limits, request); !parsed)
      return tl::unexpected(std::move(parsed.error()));
    const std::uint32_t asked =
        request.interval_ms() == 0 ? kUsualIntervalMs : request.interval_ms();
    if (asked < kLeastIntervalMs)
      return invalid(
          concat("interval_ms is ", asked, "; it must be 0 or at least ", kLeastIntervalMs));
    auto place = bound_.enter();
    if (!place) return tl::unexpected(std::move(place.error()));
    place_ = std::move(*place);
    return std::chrono::milliseconds(asked);
  }

  // Sends the load if it is new, else waits for the next time.
  void tick() noexcept EXCLUDES(mutex_) {
    inference::Load load;
    to_wire(replica_.admission.load(), load);
    const bool is_new =
        !std::exchange(sent_any_, true) || !MessageDifferencer::Equals(load, message_);
    {
      MutexLock lock(mutex_);
      if (finished_ || cancelled_) return;
      writing_ = is_new;
    }
    if (!is_new) return wait();
    message_ = std::move(load);
    StartWrite(&message_);
  }

  // The alarm holds no reference: one that is left over when the call has ended rings for nobody.
  void wait() {
    alarm_.emplace();
    alarm_->Set(std::chrono::system_clock::now() + interval_,
                [weak = weak_from_this()](bool expired) {
                  const auto self = weak.lock();
                  if (self && expired) self->tick();
                });
  }

  void end() noexcept EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
      if (writing_ || std::exchange(finished_, true)) return;
      code_ = Code::kCancelled;
    }
    end_with_request_id(call_);
    Finish(grpc::Status::CANCELLED);
  }

  const ReplicaContext& replica_;
  WatchBound& bound_;
  WatchBound::Place place_;  // empty: refused
  grpc::CallbackServerContext& call_;
  std::shared_ptr<LoadWatch> self_;  // until OnDone
  std::chrono::milliseconds interval_{0};

  // Write, wait and tick follow one another: only one of them has these.
  std::optional<grpc::Alarm> alarm_;
  inference::Load message_;  // the last one sent; gRPC's while a write is out
  bool sent_any_ = false;

  Mutex mutex_;
  bool writing_ GUARDED_BY(mutex_) = false;
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
  std::optional<Code> code_ GUARDED_BY(mutex_);
};

}  // namespace

grpc::ServerWriteReactor<inference::Load>* serve_watch_load(const ReplicaContext& replica,
                                                            WatchBound& bound,
                                                            grpc::CallbackServerContext& call,
                                                            const grpc::ByteBuffer& bytes) {
  const auto reactor = std::make_shared<LoadWatch>(replica, bound, call);
  reactor->start(bytes);
  return reactor.get();
}

}  // namespace sluice
