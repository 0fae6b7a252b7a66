#include "replica/step_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/concat.h"
#include "contract/limits.h"
#include "inference.pb.h"
#include "replica/replica_metrics.h"

namespace sluice {
namespace {

// About what an item costs on the wire besides its delta's bytes, and each log probability in it.
constexpr std::size_t kItemBytes = 64;
constexpr std::size_t kLogprobBytes = 32;

std::uint32_t saturating_sum(std::uint32_t a, std::uint32_t b) noexcept {
  return b > std::numeric_limits<std::uint32_t>::max() - a
             ? std::numeric_limits<std::uint32_t>::max()
             : a + b;
}

std::size_t wire_bytes(const Delta& delta) noexcept {
  std::size_t bytes = kItemBytes + delta.bytes.size();
  for (const TokenLogprob& logprob : delta.logprobs)
    bytes += kLogprobBytes * (1 + logprob.top.size());
  return bytes;
}

}  // namespace

StepWriter::StepWriter(std::string model, const Limits& limits, Clock& clock,
                       ReplicaMetrics& metrics)
    : model_(std::move(model)),
      max_requests_(limits.max_attached_requests),
      batch_bytes_(std::min<std::size_t>(kStepBatchBytes, limits.max_message_bytes / 2)),
      clock_(clock),
      metrics_(metrics) {}

StepWriter::~StepWriter() { clear(); }

Result<void> StepWriter::check_room(WireId id) const {
  if (requests_.contains(id))
    return invalid(concat("start.id ", id, " is the id of a running request"));
  if (requests_.size() < max_requests_) return {};
  metrics_.attached_refused.add();
  return fail(Code::kResourceExhausted,
              concat(requests_.size(),
                     " requests run on this call, and --max-attached-requests is ", max_requests_));
}

StepWriter::Serial StepWriter::open(Opening opening) {
  const Serial serial{++last_serial_};
  requests_.emplace(opening.id, Request{.serial = serial,
                                        .choices = opening.choices,
                                        .first_sent = false,
                                        .credit = opening.credit,
                                        .started_at = clock_.now(),
                                        .pass = std::move(opening.pass),
                                        .claim = std::move(opening.claim),
                                        .stream = std::nullopt});
  metrics_.attached_requests.add(1);
  return serial;
}

void StepWriter::refuse(WireId id, Error error) {
  endings_.push_back({id, std::move(error), std::nullopt});
}

void StepWriter::prepared(WireId id, Serial serial, Result<StreamReader> stream) {
  const auto found = requests_.find(id);
  if (found == requests_.end() || found->second.serial != serial) return;
  if (!stream) return end(found, std::move(stream.error()));
  Request& request = found->second;
  request.claim.reset();
  ResponseEncoder encoder(model_, stream->prompt_tokens(), request.choices);
  request.stream.emplace(Stream{std::move(*stream), std::move(encoder)});
  ready_.push_back(id);
}

void StepWriter::cancel(WireId id) {
  const auto found = requests_.find(id);
  if (found != requests_.end()) end(found, {Code::kCancelled, "the request was cancelled"});
}

void StepWriter::grant(WireId id, StreamReader::Credit credit) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  StreamReader::Credit& has = found->second.credit;
  const bool starved = has.deltas == 0 || has.bytes == 0;
  has.deltas = saturating_sum(has.deltas, credit.deltas);
  has.bytes = saturating_sum(has.bytes, credit.bytes);
  if (starved && found->second.stream) ready_.push_back(id);
}

void StepWriter::clear() noexcept {
  metrics_.attached_requests.add(-static_cast<double>(requests_.size()));
  requests_.clear();
  endings_.clear();
  ready_.clear();
}

bool StepWriter::fill(WireQueue& marked, inference::StepBatch& batch) {
  std::size_t bytes = add_endings(batch);
  marked.take(marks_);
  ready_.insert(ready_.end(), marks_.begin(), marks_.end());
  while (!ready_.empty() && bytes < batch_bytes_) {
    const auto found = requests_.find(ready_.front());
    ready_.pop_front();
    if (found != requests_.end() && found->second.stream) bytes += add_deltas(found, batch);
  }
  if (batch.items().empty()) return false;
  metrics_.attach.messages.add();
  metrics_.attach.bytes.add(static_cast<double>(bytes));
  return true;
}

void StepWriter::end(Requests::iterator request, Error error) {
  endings_.push_back({request->first, std::move(error), std::move(request->second.pass)});
  requests_.erase(request);
  metrics_.attached_requests.add(-1);
}

std::size_t StepWriter::add_endings(inference::StepBatch& batch) {
  std::size_t bytes = 0;
  for (; !endings_.empty() && bytes < batch_bytes_; endings_.pop_front()) {
    Ending& ending = endings_.front();
    inference::StepItem& item = *batch.add_items();
    item.set_id(ending.id);
    bytes += kItemBytes + ending.error.message.size();
    to_wire(ending.error, *item.mutable_status());
    if (ending.pass) leaving_.push_back(std::move(*ending.pass));
  }
  return bytes;
}

std::size_t StepWriter::add_deltas(Requests::iterator found, inference::StepBatch& batch) {
  Request& request = found->second;
  deltas_.clear();
  const std::optional<StreamEnd> end = request.stream->reader.take(request.credit, deltas_);
  std::size_t bytes = 0;
  inference::StepItem* item = nullptr;
  for (Delta& delta : deltas_) {
    bytes += wire_bytes(delta);
    item = batch.add_items();
    item->set_id(found->first);
    request.stream->encoder.encode(std::move(delta), *item->mutable_response());
  }
  if (item != nullptr && !std::exchange(request.first_sent, true)) {
    metrics_.attach.first_seconds.observe(
        std::chrono::duration<double>(clock_.now() - request.started_at).count());
  }
  if (!end) return bytes;

  const bool on_last_delta = item != nullptr;
  if (!on_last_delta) {
    item = batch.add_items();
    item->set_id(found->first);
    bytes += kItemBytes;
  }
  add_end(*end, *request.stream, on_last_delta, *item);
  leaving_.push_back(std::move(request.pass));
  requests_.erase(found);
  metrics_.attached_requests.add(-1);
  return bytes;
}

void StepWriter::add_end(const StreamEnd& end, Stream& stream, bool on_last_delta,
                         inference::StepItem& item) const {
  inference::Status& status = *item.mutable_status();
  if (!end) return to_wire(end.error(), status);
  if (!on_last_delta) item.mutable_response()->Clear();
  stream.encoder.encode_end(*end, *item.mutable_response());
}

}  // namespace sluice
