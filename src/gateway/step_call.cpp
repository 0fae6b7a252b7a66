#include "gateway/step_call.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "gateway/stream_core.h"
#include "inference.pb.h"

namespace sluice {

LinkMetrics::LinkMetrics(Metrics& metrics)
    : over_steps(metrics.counter("sluice_gateway_upstream_requests_total",
                                 "Requests sent to replicas, by the way they went",
                                 {{"way", "attach"}})),
      over_calls(metrics.counter("sluice_gateway_upstream_requests_total",
                                 "Requests sent to replicas, by the way they went",
                                 {{"way", "generate"}})),
      streams(metrics.gauge("sluice_gateway_attach_streams", "Step streams that are open")),
      broken(metrics.counter("sluice_gateway_attach_broken_total",
                             "Step streams that broke while requests ran on them")),
      messages(metrics.counter("sluice_gateway_attach_messages_total",
                               "Messages that came on step streams")),
      credit_stalls(metrics.counter("sluice_gateway_credit_stalls_total",
                                    "Times that a request had used all of its credit")) {}

StepCall::StepCall(const Surroundings& around, ReplicaId replica, const ReplicaEndpoint& endpoint,
                   Gate::Pass pass, std::function<void()> over)
    : table_(around.table),
      metrics_(around.metrics),
      io_(around.io),
      replica_(replica),
      over_(std::move(over)),
      opened_at_(around.table.now()),
      life_(std::make_shared<StepCall*>(this)),
      wire_(around.io, endpoint, std::move(pass), events()) {
  metrics_.streams.add(1);
}

StepCall::~StepCall() {
  *life_ = nullptr;
  wire_.close();
  metrics_.streams.add(-1);
  for (const auto& core : end_all({Code::kCancelled, "the gateway is shutting down"})) core->wake();
}

// None of them comes after the wire's close().
StepWire::Events StepCall::events() {
  return {.came = [this](inference::StepBatch& batch) { take(batch); },
          .all_came = [this] { wake_touched(); },
          .over = [this](bool attach) { broke(attach); }};
}

void StepCall::start(std::shared_ptr<ReplicaStream::Core> core, inference::Start&& start) {
  const std::uint64_t id = ++last_id_;
  const StreamCredit credit = core->credit();
  const std::uint32_t choices =
      start.request().has_n() ? static_cast<std::uint32_t>(start.request().n()) : 1;
  start.set_id(id);
  start.mutable_credit()->set_deltas(credit.deltas);
  start.mutable_credit()->set_bytes(credit.bytes);
  core->connect({.grant = [this, id](StreamCredit more) { wire_.grant(id, more); },
                 .cancel = [this, id] { cancel(id); }});
  running_.emplace(id, Running{std::move(core), ResponseDecoder(choices)});
  wire_.start(std::move(start));
}

void StepCall::cancel(std::uint64_t id) {
  if (running_.erase(id) == 0) return;
  wire_.cancel(id);
  leave_if_done();
}

void StepCall::retire() {
  retired_ = true;
  leave_if_done();
}

// Later, as whoever ended the last request may still be in the middle of it.
void StepCall::leave_if_done() {
  if (!retired_ || !running_.empty() || std::exchange(over_told_, true)) return;
  asio::post(io_, [life = life_] {
    if (StepCall* const call = *life) call->over_();
  });
}

void StepCall::take(inference::StepBatch& batch) {
  served_ = true;
  metrics_.messages.add();
  for (inference::StepItem& item : *batch.mutable_items()) take(item);
  if (batch.has_load()) table_.set_load(replica_, from_wire(batch.load()));
}

void StepCall::take(inference::StepItem& item) {
  const auto found = running_.find(item.id());
  if (found == running_.end()) return;  // cancelled, and the replica did not know yet
  const std::shared_ptr<ReplicaStream::Core> core = found->second.core;
  if (touched_.empty() || touched_.back() != core) touched_.push_back(core);
  Result<void> right = item.has_response() ? pass_on(found->second, item) : Result<void>();
  if (!right) {
    core->end(std::move(right));
    cancel(item.id());
  } else if (item.has_status()) {
    core->end(from_wire(item.status()));
    running_.erase(found);
    leave_if_done();
  }
}

Result<void> StepCall::pass_on(Running& running, inference::StepItem& item) {
  auto received = running.decoder.decode(*item.mutable_response());
  if (!received) return tl::unexpected(std::move(received.error()));
  ReplicaStream::Core& core = *running.core;
  const bool costs_credit = !item.has_status() || !received->delta.bytes.empty();
  if (costs_credit && !core.covers(*received))
    return fail(Code::kInternal, "the replica sent more than it was granted");
  const bool had_credit = core.has_credit();
  core.deliver(std::move(*received));
  if (had_credit && !core.has_credit()) metrics_.credit_stalls.add();
  return {};
}

// A reader may do anything now: start and cancel requests here, too.
void StepCall::wake_touched() {
  for (const auto& core : std::exchange(touched_, {})) core->wake();
}

void StepCall::broke(bool attach) {
  if (!attach) table_.set_no_attach(replica_);
  if (!running_.empty()) metrics_.broken.add();
  // Readers are woken when this takes no new requests any more, and may be gone.
  const Cores ended = end_all({Code::kUnavailable, "the replica is gone"});
  if (!std::exchange(over_told_, true)) over_();
  for (const auto& core : ended) core->wake();
}

StepCall::Cores StepCall::end_all(const Error& error) {
  Cores ended;
  for (auto& [id, running] : std::exchange(running_, {})) {
    running.core->end(tl::unexpected(error));
    ended.push_back(std::move(running.core));
  }
  return ended;
}

}  // namespace sluice
