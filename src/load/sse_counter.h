// SseCounter: reads a stream of server-sent events as OpenAI's chat API sends them, in pieces that
// end anywhere, and counts the events that carry text: parsing each whole would cost the tool more
// than some servers spend on it.
// Bounded: of a line kMostLineBytes are kept, the rest is skipped. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

struct SseUsage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint32_t cached_tokens = 0;
};

class SseCounter {
 public:
  static constexpr std::size_t kMostLineBytes = 64 << 10;

  // How many events with text ended in these bytes.
  [[nodiscard]] std::uint32_t take(std::string_view bytes);
  void clear();

  [[nodiscard]] const std::optional<SseUsage>& usage() const noexcept { return usage_; }
  // "data: [DONE]" came.
  [[nodiscard]] bool done() const noexcept { return done_; }
  // An event that is an error came: its code or type, or "error"; else empty.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  bool take_line(std::string_view line);

  std::string line_;
  std::optional<SseUsage> usage_;
  std::string error_;
  bool done_ = false;
};

}  // namespace sluice
