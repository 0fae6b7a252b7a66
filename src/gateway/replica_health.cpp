#include "gateway/replica_health.h"

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "base/concat.h"
#include "base/log.h"
#include "base/mutex.h"
#include "contract/wire_client.h"
#include "health.grpc.pb.h"
#include "inference.grpc.pb.h"

namespace sluice {
namespace {

using Health = grpc::health::v1::HealthCheckResponse;

constexpr const char* kService = "inference.LLM";
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kMostPause{2'000};
constexpr std::chrono::milliseconds kConnectionPoll{1'000};

// One server-streaming call; owns itself until it is done.
template <typename Request, typename Response>
class Stream final : public grpc::ClientReadReactor<Response>,
                     public std::enable_shared_from_this<Stream<Request, Response>> {
 public:
  using OnMessage = std::function<void(const Response&)>;
  using OnEnd = std::function<void(const grpc::Status&)>;

  Stream(Request request, Gate::Pass pass, std::shared_ptr<grpc::ClientContext> context,
         OnMessage on_message, OnEnd on_end)
      : context_(std::move(context)),
        request_(std::move(request)),
        pass_(std::move(pass)),
        on_message_(std::move(on_message)),
        on_end_(std::move(on_end)) {}

  [[nodiscard]] const Request& request() const noexcept { return request_; }

  // After the call was made on this reactor.
  void begin() {
    self_ = this->shared_from_this();
    this->StartRead(&response_);
    this->StartCall();
  }

  void OnReadDone(bool ok) noexcept override {
    if (!ok) return;
    on_message_(response_);
    this->StartRead(&response_);
  }

  void OnDone(const grpc::Status& status) noexcept override {
    // The pass goes back last, when nothing of this is left.
    const auto pass = std::move(pass_);
    const auto self = std::move(self_);
    on_end_(status);
  }

 private:
  std::shared_ptr<grpc::ClientContext> context_;
  Request request_;
  Response response_;
  std::optional<Gate::Pass> pass_;
  OnMessage on_message_;
  OnEnd on_end_;
  std::shared_ptr<Stream> self_;
};

ReplicaDescription from_wire(const inference::DescribeResponse& described) {
  ReplicaDescription description;
  description.attach = described.attach();
  for (const inference::Model& model : described.models()) {
    description.models.push_back(
        {.name = model.name(),
         .aliases = {model.aliases().begin(), model.aliases().end()},
         .context_tokens = model.context_tokens(),
         .embedding_size = described.embeddings() ? model.embedding_size() : 0});
  }
  return description;
}

}  // namespace

class ReplicaHealth::Watch : public std::enable_shared_from_this<Watch> {
 public:
  Watch(ReplicaTable& table, ReplicaId replica, std::shared_ptr<const ReplicaEndpoint> endpoint,
        Gate& calls)
      : table_(table),
        replica_(replica),
        endpoint_(std::move(endpoint)),
        calls_(calls),
        channel_(endpoint_->open(ChannelUse::kWatch)) {}

  void start() {
    watch_health();
    watch_load();
  }
  void stop() EXCLUDES(mutex_);

 private:
  using HealthStream = Stream<grpc::health::v1::HealthCheckRequest, Health>;
  using LoadStream = Stream<inference::WatchLoadRequest, inference::Load>;
  // Something that is begun again when it has ended.
  struct Loop {
    std::chrono::milliseconds pause{0};
    std::optional<grpc::Alarm> alarm;
    std::shared_ptr<grpc::ClientContext> call;
  };
  using Begin = void (Watch::*)();

  void watch_health() EXCLUDES(mutex_);
  void health_came(const Health& health) EXCLUDES(mutex_);
  void health_ended(const grpc::Status& status) EXCLUDES(mutex_);
  void watch_load() EXCLUDES(mutex_);
  void describe() EXCLUDES(mutex_);
  void described(const grpc::Status& status, const inference::DescribeResponse& response);
  void follow_connection() EXCLUDES(mutex_);

  // A pass and a place for the loop's next call; nothing after stop().
  [[nodiscard]] std::optional<Gate::Pass> enter(Loop& loop,
                                                std::shared_ptr<grpc::ClientContext> call)
      EXCLUDES(mutex_);
  void again(Loop& loop, Begin begin) EXCLUDES(mutex_);
  void came(Loop& loop) EXCLUDES(mutex_);
  [[nodiscard]] std::shared_ptr<grpc::ClientContext> call_of(const Loop& loop) EXCLUDES(mutex_);

  ReplicaTable& table_;
  const ReplicaId replica_;
  const std::shared_ptr<const ReplicaEndpoint> endpoint_;
  Gate& calls_;
  const std::shared_ptr<grpc::Channel> channel_;

  Mutex mutex_;
  Loop health_;  // what is in them: mutex_
  Loop load_;
  Loop describing_;
  bool tried_ = false;                         // health's: one at a time
  bool warned_ = false;                        // describe's: one at a time
  bool described_ GUARDED_BY(mutex_) = false;  // on this connection
  bool stopped_ GUARDED_BY(mutex_) = false;
};

std::optional<Gate::Pass> ReplicaHealth::Watch::enter(Loop& loop,
                                                      std::shared_ptr<grpc::ClientContext> call) {
  endpoint_->authorize(*call);
  // It begins when the connection is there, which comes back by itself.
  call->set_wait_for_ready(true);
  const MutexLock lock(mutex_);
  if (stopped_) return std::nullopt;
  loop.call = std::move(call);
  return calls_.enter();
}

void ReplicaHealth::Watch::came(Loop& loop) {
  const MutexLock lock(mutex_);
  loop.pause = {};
}

std::shared_ptr<grpc::ClientContext> ReplicaHealth::Watch::call_of(const Loop& loop) {
  const MutexLock lock(mutex_);
  return loop.call;
}

void ReplicaHealth::Watch::again(Loop& loop, Begin begin) {
  const MutexLock lock(mutex_);
  loop.call = nullptr;
  auto entered = stopped_ ? std::nullopt : calls_.enter();
  if (!entered) return;
  const auto pass = std::make_shared<std::optional<Gate::Pass>>(std::move(entered));
  loop.alarm.emplace();
  loop.alarm->Set(std::chrono::system_clock::now() + loop.pause,
                  [self = shared_from_this(), pass, begin](bool rang) mutable {
                    if (rang) ((*self).*begin)();
                    self = nullptr;
                    pass->reset();
                  });
  loop.pause = std::clamp(loop.pause * 2, kFirstPause, kMostPause);
}

void ReplicaHealth::Watch::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  // Nobody begins any of them any more.
  for (Loop* const loop : {&health_, &load_, &describing_}) {
    if (const auto call = call_of(*loop)) call->TryCancel();
    if (loop->alarm) loop->alarm->Cancel();
  }
}

void ReplicaHealth::Watch::watch_health() {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(kService);
  const auto context = std::make_shared<grpc::ClientContext>();
  auto pass = enter(health_, context);
  if (!pass) return;
  // The first one says why, where there is no connection to be had.
  if (!std::exchange(tried_, true)) context->set_wait_for_ready(false);
  const auto self = shared_from_this();
  const auto stream = std::make_shared<HealthStream>(
      std::move(request), std::move(*pass), context,
      [self](const Health& health) { self->health_came(health); },
      [self](const grpc::Status& status) { self->health_ended(status); });
  grpc::health::v1::Health::Stub(channel_).async()->Watch(context.get(), &stream->request(),
                                                          stream.get());
  stream->begin();
}

void ReplicaHealth::Watch::health_came(const Health& health) {
  came(health_);
  // One that does not know our service by name serves as long as it answers.
  if (health.status() == Health::SERVING || health.status() == Health::SERVICE_UNKNOWN) {
    table_.set_serving(replica_);
  } else {
    table_.set_not_serving(replica_, {.why = "its health says NOT_SERVING", .planned = true});
  }
  bool ask = false;
  {
    const MutexLock lock(mutex_);
    ask = !std::exchange(described_, true);
  }
  if (ask) describe();
}

void ReplicaHealth::Watch::health_ended(const grpc::Status& status) {
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    described_ = false;
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) return follow_connection();
  table_.set_not_serving(
      replica_, {.why = status.ok() ? "it ended its health watch" : status.error_message()});
  again(health_, &Watch::watch_health);
}

// Instead of health, where a server has none.
void ReplicaHealth::Watch::follow_connection() {
  const bool up = channel_->GetState(true) == GRPC_CHANNEL_READY;
  if (up) {
    table_.set_serving(replica_);
  } else {
    table_.set_not_serving(replica_, {.why = "its connection is gone"});
  }
  bool ask = false;
  {
    const MutexLock lock(mutex_);
    ask = up && !described_;
    described_ = up;
    health_.pause = kConnectionPoll;
  }
  if (ask) describe();
  again(health_, &Watch::follow_connection);
}

void ReplicaHealth::Watch::watch_load() {
  const auto context = std::make_shared<grpc::ClientContext>();
  auto pass = enter(load_, context);
  if (!pass) return;
  const auto self = shared_from_this();
  const auto stream = std::make_shared<LoadStream>(
      inference::WatchLoadRequest(), std::move(*pass), context,
      [self](const inference::Load& load) {
        self->came(self->load_);
        self->table_.set_load(self->replica_, from_wire(load));
      },
      [self](const grpc::Status& status) {
        if (status.error_code() != grpc::StatusCode::UNIMPLEMENTED)
          self->again(self->load_, &Watch::watch_load);
      });
  inference::Replica::Stub(channel_).async()->WatchLoad(context.get(), &stream->request(),
                                                        stream.get());
  stream->begin();
}

void ReplicaHealth::Watch::describe() {
  struct Call {
    inference::DescribeRequest request;
    inference::DescribeResponse response;
    std::optional<Gate::Pass> pass;
  };
  auto context = std::make_shared<grpc::ClientContext>();
  auto call = std::make_shared<Call>();
  auto pass = enter(describing_, context);
  if (!pass) return;
  call->pass.emplace(std::move(*pass));
  inference::Replica::Stub(channel_).async()->Describe(
      context.get(), &call->request, &call->response,
      [self = shared_from_this(), call, context](grpc::Status status) mutable {
        const auto leaving = std::move(call->pass);
        self->described(status, call->response);
        self = nullptr;
        call = nullptr;
        context = nullptr;
      });
}

void ReplicaHealth::Watch::described(const grpc::Status& status,
                                     const inference::DescribeResponse& response) {
  if (status.ok()) {
    came(describing_);
    return table_.set_description(replica_, from_wire(response));
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED)
    return table_.set_description(replica_, {});
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED && !std::exchange(warned_, true))
    log_warning("pool", "a replica does not take this gateway's key (--replica-key)");
  {
    // When the connection is gone, the next one asks anew.
    const MutexLock lock(mutex_);
    if (!described_) return;
  }
  again(describing_, &Watch::describe);
}

ReplicaHealth::ReplicaHealth(ReplicaTable& table, Clock& clock, ReplicaId replica,
                             std::shared_ptr<const ReplicaEndpoint> endpoint)
    : clock_(clock), watch_(std::make_shared<Watch>(table, replica, std::move(endpoint), calls_)) {
  watch_->start();
}

ReplicaHealth::~ReplicaHealth() {
  watch_->stop();
  calls_.close();
  static_cast<void>(calls_.wait_empty(clock_, kForever));
}

}  // namespace sluice
