#include "replica/health.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "contract/wire.h"
#include "health.grpc.pb.h"
#include "replica/parse_message.h"
#include "replica/raw_method.h"
#include "replica/replica_metrics.h"
#include "replica/watch_bound.h"

namespace sluice {
namespace {

namespace v1 = grpc::health::v1;
using ServingStatus = v1::HealthCheckResponse::ServingStatus;

ServingStatus to_status(bool serving) noexcept {
  return serving ? v1::HealthCheckResponse::SERVING : v1::HealthCheckResponse::NOT_SERVING;
}

}  // namespace

class HealthService::Service final : public v1::Health::Service {
 public:
  class Watcher;

  Service(std::vector<std::string> names, std::uint32_t max_watches, ReplicaMetrics& metrics)
      : names_(std::move(names)),
        bound_(max_watches, metrics.health_watches, metrics.health_watches_refused) {
    MarkMethodRawCallback(
        0, raw_unary<v1::HealthCheckResponse>([this](auto&... call) { return check(call...); }));
    MarkMethodRawCallback(
        1, raw_server_streaming<v1::HealthCheckResponse>(
               [this](grpc::CallbackServerContext&, const auto& bytes) { return watch(bytes); }));
  }

  [[nodiscard]] grpc::ServerUnaryReactor* check(grpc::CallbackServerContext& call,
                                                const grpc::ByteBuffer& bytes,
                                                v1::HealthCheckResponse& response) const;
  [[nodiscard]] grpc::ServerWriteReactor<v1::HealthCheckResponse>* watch(
      const grpc::ByteBuffer& bytes) EXCLUDES(mutex_);

  [[nodiscard]] bool knows(const std::string& name) const {
    return name.empty() || std::find(names_.begin(), names_.end(), name) != names_.end();
  }
  [[nodiscard]] bool serving() const noexcept EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return serving_;
  }
  void set_serving(bool serving) noexcept EXCLUDES(mutex_);
  void retire() noexcept EXCLUDES(mutex_);
  void end_watches() noexcept EXCLUDES(mutex_);
  void forget(Watcher* watcher) noexcept EXCLUDES(mutex_);

 private:
  using Watchers = std::set<std::shared_ptr<Watcher>>;

  [[nodiscard]] Result<WatchBound::Place> admit(const grpc::ByteBuffer& bytes,
                                                v1::HealthCheckRequest& request);

  const std::vector<std::string> names_;
  WatchBound bound_;
  mutable Mutex mutex_;
  bool serving_ GUARDED_BY(mutex_) = false;
  bool retired_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;
  Watchers watchers_ GUARDED_BY(mutex_);
};

// One Watch call. What to do next is decided under the lock and done outside of it: while `busy_`,
// nobody else starts anything, and the call is not done before the last thing started, its Finish.
class HealthService::Service::Watcher final
    : public grpc::ServerWriteReactor<v1::HealthCheckResponse> {
 public:
  Watcher(Service& service, WatchBound::Place place)
      : service_(service), place_(std::move(place)) {}

  void show(ServingStatus status) noexcept EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      wanted_ = status;
    }
    advance();
  }

  void end(grpc::Status how) noexcept EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (!end_) end_ = std::move(how);
    }
    advance();
  }

 private:
  void advance() noexcept EXCLUDES(mutex_) {
    bool finish = false;
    grpc::Status how;
    {
      const MutexLock lock(mutex_);
      if (busy_) return;
      if (end_) {
        finish = true;
        how = *end_;
      } else if (wanted_ != sent_) {
        sent_ = wanted_;
        message_.set_status(*wanted_);
      } else {
        return;
      }
      busy_ = true;
    }
    if (finish) {
      Finish(std::move(how));
    } else {
      StartWrite(&message_);
    }
  }

  void OnWriteDone(bool ok) noexcept override {
    {
      const MutexLock lock(mutex_);
      busy_ = false;
      if (!ok && !end_) end_ = grpc::Status::CANCELLED;
    }
    advance();
  }
  void OnCancel() noexcept override { end(grpc::Status::CANCELLED); }
  void OnDone() noexcept override { service_.forget(this); }

  Service& service_;
  const WatchBound::Place place_;    // empty: refused
  v1::HealthCheckResponse message_;  // written by whoever is busy
  Mutex mutex_;
  bool busy_ GUARDED_BY(mutex_) = false;
  std::optional<ServingStatus> wanted_ GUARDED_BY(mutex_);
  std::optional<ServingStatus> sent_ GUARDED_BY(mutex_);
  std::optional<grpc::Status> end_ GUARDED_BY(mutex_);
};

namespace {

const grpc::Status kEnded{grpc::StatusCode::UNAVAILABLE, "the server is shutting down"};

}  // namespace

grpc::ServerUnaryReactor* HealthService::Service::check(grpc::CallbackServerContext& call,
                                                        const grpc::ByteBuffer& bytes,
                                                        v1::HealthCheckResponse& response) const {
  grpc::ServerUnaryReactor* const reactor = call.DefaultReactor();
  v1::HealthCheckRequest request;
  if (const auto parsed = parse_small_message(bytes, request); !parsed) {
    reactor->Finish(to_grpc(parsed.error()));
  } else if (knows(request.service())) {
    response.set_status(to_status(serving()));
    reactor->Finish(grpc::Status::OK);
  } else {
    reactor->Finish({grpc::StatusCode::NOT_FOUND, "this server has no such service"});
  }
  return reactor;
}

Result<WatchBound::Place> HealthService::Service::admit(const grpc::ByteBuffer& bytes,
                                                        v1::HealthCheckRequest& request) {
  if (auto parsed = parse_small_message(bytes, request); !parsed)
    return tl::unexpected(std::move(parsed.error()));
  return bound_.enter();
}

grpc::ServerWriteReactor<v1::HealthCheckResponse>* HealthService::Service::watch(
    const grpc::ByteBuffer& bytes) {
  v1::HealthCheckRequest request;
  auto place = admit(bytes, request);
  auto watcher = std::make_shared<Watcher>(*this, place ? std::move(*place) : nullptr);
  bool serving = false;
  bool ended = false;
  {
    const MutexLock lock(mutex_);
    watchers_.insert(watcher);
    serving = serving_;
    ended = ended_;
  }
  if (!place) {
    watcher->end(to_grpc(place.error()));
  } else if (ended) {
    watcher->end(kEnded);
  } else if (!knows(request.service())) {
    watcher->show(v1::HealthCheckResponse::SERVICE_UNKNOWN);
  } else {
    watcher->show(to_status(serving));
  }
  return watcher.get();
}

void HealthService::Service::set_serving(bool serving) noexcept {
  Watchers watchers;
  {
    const MutexLock lock(mutex_);
    if (serving_ == serving || (serving && retired_)) return;
    serving_ = serving;
    watchers = watchers_;
  }
  for (const auto& watcher : watchers) watcher->show(to_status(serving));
}

void HealthService::Service::retire() noexcept {
  {
    const MutexLock lock(mutex_);
    retired_ = true;
  }
  set_serving(false);
}

void HealthService::Service::end_watches() noexcept {
  Watchers watchers;
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    watchers = watchers_;
  }
  for (const auto& watcher : watchers) watcher->end(kEnded);
}

void HealthService::Service::forget(Watcher* watcher) noexcept {
  std::shared_ptr<Watcher> last;  // destroyed after the lock is released
  const MutexLock lock(mutex_);
  const auto found = std::find_if(watchers_.begin(), watchers_.end(),
                                  [&](const auto& one) { return one.get() == watcher; });
  if (found == watchers_.end()) return;
  last = *found;
  watchers_.erase(found);
}

HealthService::HealthService(std::vector<std::string> services, std::uint32_t max_watches,
                             ReplicaMetrics& metrics)
    : service_(std::make_unique<Service>(std::move(services), max_watches, metrics)) {}
HealthService::~HealthService() = default;
grpc::Service& HealthService::service() noexcept { return *service_; }
void HealthService::set_serving(bool serving) noexcept { service_->set_serving(serving); }
void HealthService::retire() noexcept { service_->retire(); }
bool HealthService::serving() const noexcept { return service_->serving(); }
void HealthService::end_watches() noexcept { service_->end_watches(); }

}  // namespace sluice
