#include "gateway/replica_links.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "contract/wire_client.h"
#include "gateway/replica_call.h"
#include "gateway/replica_pool_state.h"
#include "gateway/replica_unary.h"
#include "gateway/step_client.h"
#include "gateway/stream_core.h"
#include "inference.pb.h"

namespace sluice {
namespace {

Error forgotten() { return {Code::kUnavailable, "the replica is gone"}; }

}  // namespace

class ReplicaLinks::Parts {
 public:
  Parts(ReplicaPool::State& pool, asio::io_context& io, const GatewayLimits& limits)
      : pool_(pool), io_(io), limits_(limits) {}
  ~Parts();

  // The ways to one replica.
  struct Link {
    std::shared_ptr<StepClient> steps;
    ReplicaChannels channels;
  };

  // Null if the pool has forgotten it.
  [[nodiscard]] Link* link(ReplicaId replica);
  [[nodiscard]] ReplicaStream generate(ReplicaId replica, const GenerationRequest& request,
                                       const CallContext& context, WakeUp& reader);

  ReplicaPool::State& pool_;
  asio::io_context& io_;
  const GatewayLimits limits_;
  Gate gate_;
  ReplicaCalls calls_{io_, gate_};
  ReplicaUnary unary_{io_, gate_};
  std::map<ReplicaId, Link> links_;

 private:
  void drop_forgotten();
  void send(Link& link, const std::shared_ptr<ReplicaStream::Core>& core, bool attach,
            const GenerationRequest& request, const CallContext& context);
};

ReplicaLinks::Parts::~Parts() {
  calls_.close();
  unary_.close();
  for (auto& [id, link] : links_) link.steps->close();
  gate_.close();
  static_cast<void>(gate_.wait_empty(pool_.clock, kForever));
}

ReplicaLinks::Parts::Link* ReplicaLinks::Parts::link(ReplicaId replica) {
  if (const auto found = links_.find(replica); found != links_.end()) return &found->second;
  const auto endpoint = pool_.table.endpoint(replica);
  if (!endpoint) return nullptr;
  drop_forgotten();
  const StepCall::Surroundings around{io_, pool_.table, pool_.links, gate_};
  auto steps = std::make_shared<StepClient>(around, replica, endpoint);
  return &links_.emplace(replica, Link{std::move(steps), ReplicaChannels(endpoint, limits_)})
              .first->second;
}

// When replicas come, others may have gone.
void ReplicaLinks::Parts::drop_forgotten() {
  std::erase_if(links_, [&](auto& entry) {
    auto& [id, link] = entry;
    return !pool_.table.endpoint(id) && link.steps->idle() && link.channels.idle();
  });
}

ReplicaStream ReplicaLinks::Parts::generate(ReplicaId replica, const GenerationRequest& request,
                                            const CallContext& context, WakeUp& reader) {
  auto core = std::make_shared<ReplicaStream::Core>(limits_, Attempt(pool_.table, replica), reader);
  if (Link* const way = link(replica)) {
    send(*way, core, pool_.table.attach(replica), request, context);
  } else {
    core->end(tl::unexpected(forgotten()));
  }
  return ReplicaStream(std::move(core));
}

void ReplicaLinks::Parts::send(Link& link, const std::shared_ptr<ReplicaStream::Core>& core,
                               bool attach, const GenerationRequest& request,
                               const CallContext& context) {
  inference::Start start;
  if (auto taken = to_wire(request, *start.mutable_request()); !taken)
    return core->end(std::move(taken));
  if (!attach || start.request().ByteSizeLong() > limits_.large_request_bytes) {
    pool_.links.over_calls.add();
    return calls_.start(core, std::move(*start.mutable_request()), link.channels, context);
  }
  if (context.deadline != kForever) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(context.deadline - pool_.clock.now());
    start.set_timeout_ms(static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(left.count(), 0, std::numeric_limits<std::uint32_t>::max())));
  }
  if (is_plain(context.request_id)) start.set_request_id(context.request_id);
  if (is_plain(context.traceparent)) start.set_traceparent(context.traceparent);
  pool_.links.over_steps.add();
  link.steps->start(core, std::move(start));
}

ReplicaLinks::ReplicaLinks(ReplicaPool& pool, asio::io_context& io, const GatewayLimits& limits)
    : parts_(std::make_unique<Parts>(*pool.state_, io, limits)) {}

ReplicaLinks::~ReplicaLinks() = default;

ReplicaStream ReplicaLinks::generate(ReplicaId replica, const GenerationRequest& request,
                                     const CallContext& context, WakeUp& reader) {
  return parts_->generate(replica, request, context, reader);
}

Task<Result<EmbedAnswer>> ReplicaLinks::embed(ReplicaId replica, std::string model,
                                              std::vector<std::string> inputs,
                                              CallContext context) {
  Parts::Link* const link = parts_->link(replica);
  if (link == nullptr) co_return tl::unexpected(forgotten());
  co_return co_await parts_->unary_.embed(Attempt(parts_->pool_.table, replica), link->channels,
                                          std::move(model), std::move(inputs), std::move(context));
}

Task<Result<TokenCount>> ReplicaLinks::count_tokens(ReplicaId replica, std::string model,
                                                    PromptSource prompt, CallContext context) {
  Parts::Link* const link = parts_->link(replica);
  if (link == nullptr) co_return tl::unexpected(forgotten());
  co_return co_await parts_->unary_.count_tokens(Attempt(parts_->pool_.table, replica),
                                                 link->channels, std::move(model),
                                                 std::move(prompt), std::move(context));
}

}  // namespace sluice
