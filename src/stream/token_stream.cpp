#include "stream/token_stream.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "base/check.h"

namespace sluice {
namespace stream_detail {

struct Core {
  explicit Core(StreamOptions stream_options) : options(std::move(stream_options)) {}

  const StreamOptions options;
  std::atomic<bool> reader_gone = false;
  std::atomic<TimePoint> reader_gone_since{TimePoint{}};

  Mutex mutex;
  std::vector<Delta> queue GUARDED_BY(mutex);
  std::uint32_t queued_deltas GUARDED_BY(mutex) = 0;
  std::uint32_t queued_bytes GUARDED_BY(mutex) = 0;
  bool full GUARDED_BY(mutex) = false;    // the writer was told kFull and waits for the doorbell
  bool marked GUARDED_BY(mutex) = false;  // listed in the wire's queue, not taken yet
  bool end_taken GUARDED_BY(mutex) = false;
  std::optional<StreamEnd> end GUARDED_BY(mutex);
};

namespace {

std::uint32_t deltas_in(const Delta& delta) noexcept {
  return std::max<std::uint32_t>(1, delta.tokens);
}

std::uint32_t bytes_in(const Delta& delta) noexcept {
  return static_cast<std::uint32_t>(delta.bytes.size());
}

bool joinable(const Delta& earlier, const Delta& later) noexcept {
  return earlier.index == later.index && !earlier.finish_reason && earlier.logprobs.empty() &&
         later.logprobs.empty();
}

void enqueue(Core& core, Delta delta) REQUIRES(core.mutex) {
  core.queued_deltas += deltas_in(delta);
  core.queued_bytes += bytes_in(delta);
  if (!core.queue.empty() && joinable(core.queue.back(), delta)) {
    Delta& back = core.queue.back();
    back.bytes += delta.bytes;
    back.tokens += delta.tokens;
    back.finish_reason = delta.finish_reason;
    back.matched_stop = std::move(delta.matched_stop);
  } else {
    core.queue.push_back(std::move(delta));
  }
}

// True if the wire must be given to Delivery.
bool mark(Core& core) REQUIRES(core.mutex) {
  if (std::exchange(core.marked, true)) return false;
  return core.options.wire->mark(core.options.wire_id);
}

}  // namespace
}  // namespace stream_detail

using stream_detail::Core;

StreamWriter::StreamWriter(std::shared_ptr<Core> core) noexcept : core_(std::move(core)) {}
StreamWriter::StreamWriter(StreamWriter&&) noexcept = default;
StreamWriter::~StreamWriter() { drop(); }

StreamWriter::Push StreamWriter::push(Delta delta) noexcept {
  Core& core = *core_;
  MutexLock lock(core.mutex);
  CHECK(!core.end, "a finished stream takes no more deltas");
  stream_detail::enqueue(core, std::move(delta));
  wire_touched_ |= stream_detail::mark(core);
  core.full =
      core.queued_deltas >= core.options.max_deltas || core.queued_bytes >= core.options.max_bytes;
  return core.full ? Push::kFull : Push::kRoom;
}

void StreamWriter::finish(std::optional<Delta> last, StreamEnd end) noexcept {
  Core& core = *core_;
  MutexLock lock(core.mutex);
  CHECK(!std::exchange(finished_, true), "a stream ends once");
  if (last) stream_detail::enqueue(core, std::move(*last));
  core.end.emplace(std::move(end));
  wire_touched_ |= stream_detail::mark(core);
}

bool StreamWriter::reader_gone() const noexcept {
  return core_->reader_gone.load(std::memory_order_acquire);
}

TimePoint StreamWriter::reader_gone_since() const noexcept {
  return core_->reader_gone_since.load(std::memory_order_relaxed);
}

std::shared_ptr<WireQueue> StreamWriter::take_touched_wire() noexcept {
  return std::exchange(wire_touched_, false) ? core_->options.wire : nullptr;
}

void StreamWriter::drop() noexcept {
  if (core_ == nullptr || finished_) return;
  finish(std::nullopt, fail(Code::kInternal, "the request was dropped by the server"));
  // Nobody posts this wire to Delivery any more.
  if (const auto wire = take_touched_wire()) wire->wake();
}

StreamReader::StreamReader(std::shared_ptr<Core> core) noexcept : core_(std::move(core)) {}
StreamReader::StreamReader(StreamReader&&) noexcept = default;

StreamReader& StreamReader::operator=(StreamReader&& other) noexcept {
  if (this != &other) {
    drop();
    core_ = std::move(other.core_);
  }
  return *this;
}

StreamReader::~StreamReader() { drop(); }

void StreamReader::drop() noexcept {
  if (core_ == nullptr) return;
  bool ended = false;
  {
    MutexLock lock(core_->mutex);
    ended = core_->end.has_value();
  }
  core_->reader_gone_since.store(core_->options.clock->now(), std::memory_order_relaxed);
  core_->reader_gone.store(true, std::memory_order_release);
  if (!ended) core_->options.doorbell->ring_dropped(core_->options.id);
  core_.reset();
}

std::optional<StreamEnd> StreamReader::take(Credit& credit, std::vector<Delta>& out) noexcept {
  Core& core = *core_;
  bool ring = false;
  std::optional<StreamEnd> end;
  {
    MutexLock lock(core.mutex);
    core.marked = false;
    std::size_t whole = 0;
    for (; whole < core.queue.size() && credit.deltas > 0; ++whole) {
      Delta& delta = core.queue[whole];
      const std::uint32_t bytes = stream_detail::bytes_in(delta);
      if (bytes > credit.bytes) {
        if (credit.bytes == 0) break;
        if (delta.logprobs.empty()) {
          Delta& front = out.emplace_back();
          front.index = delta.index;
          front.bytes = delta.bytes.substr(0, credit.bytes);
          delta.bytes.erase(0, credit.bytes);
          core.queued_bytes -= credit.bytes;
          credit.bytes = 0;
          --credit.deltas;
          break;
        }
      }
      credit.bytes -= std::min(bytes, credit.bytes);
      --credit.deltas;
      core.queued_bytes -= bytes;
      core.queued_deltas -= stream_detail::deltas_in(delta);
      out.push_back(std::move(delta));
    }
    core.queue.erase(core.queue.begin(), core.queue.begin() + static_cast<std::ptrdiff_t>(whole));
    if (core.full && core.queued_deltas <= core.options.max_deltas / 2 &&
        core.queued_bytes <= core.options.max_bytes / 2) {
      core.full = false;
      ring = true;
    }
    // A failure does not wait for a reader that grants nothing: what is left goes unread.
    if (core.end && !core.end->has_value()) core.queue.clear();
    if (core.queue.empty() && core.end && !std::exchange(core.end_taken, true)) end = core.end;
  }
  if (ring) core.options.doorbell->ring_readable(core.options.id);
  return end;
}

std::uint32_t StreamReader::prompt_tokens() const noexcept { return core_->options.prompt_tokens; }
RequestId StreamReader::id() const noexcept { return core_->options.id; }

std::pair<StreamWriter, StreamReader> make_token_stream(StreamOptions options) {
  CHECK(options.wire != nullptr && options.doorbell != nullptr && options.clock != nullptr,
        "a stream needs all three");
  auto core = std::make_shared<Core>(std::move(options));
  return {StreamWriter(core), StreamReader(core)};
}

}  // namespace sluice
