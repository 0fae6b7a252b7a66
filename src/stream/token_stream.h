// TokenStream: deltas of one request, from the engine thread (StreamWriter) to its wire
// (StreamReader). Bounded by Limits::stream_deltas and stream_bytes. At the bound push returns
// kFull: the request is parked, and pushes no more until the doorbell says that the reader came
// down to half of the bound. Deltas of one choice that wait here are joined into one. Dropping the
// reader cancels the request; dropping the writer unfinished ends the stream with kInternal.
// Thread: writer engine; reader any one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "contract/generation.h"
#include "contract/limits.h"
#include "stream/doorbell.h"
#include "stream/wire_queue.h"

namespace sluice {

// How a stream ends: the counts of a finished request, or why it did not finish.
using StreamEnd = Result<Usage>;

namespace stream_detail {
struct Core;
}

class StreamWriter {
 public:
  enum class Push { kRoom, kFull };

  StreamWriter(StreamWriter&&) noexcept;
  StreamWriter& operator=(StreamWriter&&) = delete;
  ~StreamWriter();

  // Always takes the delta. kFull: no further push before Doorbell::Rings::readable names this
  // request, other than those of the request's other choices in the same step.
  [[nodiscard]] Push push(Delta delta) noexcept;

  // Ends the stream; `last` (if any) is the last delta and is never apart from the end.
  void finish(std::optional<Delta> last, StreamEnd end) noexcept;

  [[nodiscard]] bool reader_gone() const noexcept;
  // When the reader went. Only if reader_gone().
  [[nodiscard]] TimePoint reader_gone_since() const noexcept;

  // The wire that must be posted to Delivery because of the pushes since the last call, if any.
  [[nodiscard]] std::shared_ptr<WireQueue> take_touched_wire() noexcept;

 private:
  friend std::pair<StreamWriter, class StreamReader> make_token_stream(
      struct StreamOptions options);
  explicit StreamWriter(std::shared_ptr<stream_detail::Core> core) noexcept;
  void drop() noexcept;

  std::shared_ptr<stream_detail::Core> core_;
  bool wire_touched_ = false;
  bool finished_ = false;
};

class StreamReader {
 public:
  // How much may be taken; take() subtracts what it took.
  struct Credit {
    std::uint32_t deltas = 0;
    std::uint32_t bytes = 0;
    [[nodiscard]] static constexpr Credit unlimited() noexcept {
      return {0xffff'ffff, 0xffff'ffff};
    }
  };

  StreamReader(StreamReader&&) noexcept;
  StreamReader& operator=(StreamReader&&) noexcept;
  ~StreamReader();

  // Appends deltas to `out`, as far as the credit goes; a delta longer than the credit's bytes is
  // split, except one with logprobs, which is taken whole if any bytes are left. The end is
  // returned once: with the call that takes the last delta.
  [[nodiscard]] std::optional<StreamEnd> take(Credit& credit, std::vector<Delta>& out) noexcept;

  [[nodiscard]] std::uint32_t prompt_tokens() const noexcept;
  [[nodiscard]] RequestId id() const noexcept;

 private:
  friend std::pair<StreamWriter, StreamReader> make_token_stream(StreamOptions options);
  explicit StreamReader(std::shared_ptr<stream_detail::Core> core) noexcept;
  void drop() noexcept;

  std::shared_ptr<stream_detail::Core> core_;
};

struct StreamOptions {
  RequestId id{};
  std::uint32_t prompt_tokens = 0;
  std::uint32_t max_deltas = Limits{}.stream_deltas;
  std::uint32_t max_bytes = Limits{}.stream_bytes;
  WireId wire_id = 0;
  std::shared_ptr<WireQueue> wire;
  Doorbell* doorbell = nullptr;  // outlives the stream
  Clock* clock = nullptr;        // outlives the stream
};

[[nodiscard]] std::pair<StreamWriter, StreamReader> make_token_stream(StreamOptions options);

}  // namespace sluice
