// StepWriter: the requests of one Attach call, and the StepBatch that is to be sent next for all of
// them. Every request that was started ends with exactly one item that has a status. Nothing but
// such an end is sent without credit. Bounded: --max-attached-requests at once; a batch stops
// growing at kStepBatchBytes, or half of --max-message-bytes where that is less, and what is left
// goes into the next one. Thread: one at a time (its call's mutex).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/gate.h"
#include "contract/wire.h"
#include "replica/claim.h"
#include "stream/token_stream.h"
#include "stream/wire_queue.h"

namespace inference {
class StepBatch;
class StepItem;
}  // namespace inference

namespace sluice {

struct Limits;
struct ReplicaMetrics;

// Far below what a gRPC client takes by default (4 MiB), as one item may go over it.
inline constexpr std::size_t kStepBatchBytes = 1 << 20;

class StepWriter {
 public:
  // Tells requests apart that had the same id one after the other.
  enum class Serial : std::uint64_t {};

  struct Opening {
    WireId id = 0;
    std::uint32_t choices = 1;
    StreamReader::Credit credit;
    Gate::Pass pass;  // held until the request's end is on the wire
    Claim claim;      // held until its stream is there
  };

  // `model` is the served model's name. The references outlive the writer.
  StepWriter(std::string model, const Limits& limits, Clock& clock, ReplicaMetrics& metrics);
  ~StepWriter();
  StepWriter(const StepWriter&) = delete;
  StepWriter& operator=(const StepWriter&) = delete;

  // kInvalidArgument if the id is running, kResourceExhausted at --max-attached-requests.
  [[nodiscard]] Result<void> check_room(WireId id) const;
  // Only after check_room.
  [[nodiscard]] Serial open(Opening opening);
  // A start that was never opened ends with `error`.
  void refuse(WireId id, Error error);

  // Its stream, or why there is none. Ignored (and the stream dropped) if that request has ended
  // meanwhile.
  void prepared(WireId id, Serial serial, Result<StreamReader> stream);
  // Ends it with kCancelled. Ids that are not running are ignored, here and in grant.
  void cancel(WireId id);
  void grant(WireId id, StreamReader::Credit credit);
  // Cancels everything and forgets what is unsent.
  void clear() noexcept;

  // Adds what can be sent now to `batch`, which must be empty. False: nothing.
  [[nodiscard]] bool fill(WireQueue& marked, inference::StepBatch& batch);
  // The last filled batch is on the wire: passes of requests that ended in it go back.
  void written() noexcept { leaving_.clear(); }

  // No request is running and nothing is to be sent.
  [[nodiscard]] bool idle() const noexcept { return requests_.empty() && endings_.empty(); }
  [[nodiscard]] std::size_t unsent_endings() const noexcept { return endings_.size(); }

 private:
  struct Stream {
    StreamReader reader;
    ResponseEncoder encoder;
  };
  struct Request {
    Serial serial{};
    std::uint32_t choices = 1;
    bool first_sent = false;
    StreamReader::Credit credit;
    TimePoint started_at;
    Gate::Pass pass;
    std::optional<Claim> claim;
    std::optional<Stream> stream;
  };
  // A request that ended without its stream's doing.
  struct Ending {
    WireId id = 0;
    Error error;
    std::optional<Gate::Pass> pass;
  };
  using Requests = std::unordered_map<WireId, Request>;

  void end(Requests::iterator request, Error error);
  // Both return the bytes of what they added, roughly.
  std::size_t add_endings(inference::StepBatch& batch);
  std::size_t add_deltas(Requests::iterator found, inference::StepBatch& batch);
  void add_end(const StreamEnd& end, Stream& stream, bool on_last_delta,
               inference::StepItem& item) const;

  const std::string model_;
  const std::size_t max_requests_;
  const std::size_t batch_bytes_;
  Clock& clock_;
  ReplicaMetrics& metrics_;

  Requests requests_;
  std::deque<Ending> endings_;
  std::deque<WireId> ready_;  // may have something to send; an id may be here twice, or be gone
  std::vector<WireId> marks_;
  std::vector<Delta> deltas_;
  std::vector<Gate::Pass> leaving_;
  std::uint64_t last_serial_ = 0;
};

}  // namespace sluice
