// StopMatcher: finds stop strings in a stream of bytes that is cut anywhere, and holds back what
// may still become one. Several Knuth–Morris–Pratt automata side by side; the first stop string to
// be complete ends the text, of two that end at the same byte the longer one. Bounded: it holds
// back fewer bytes than the longest stop string (Limits::max_stop_bytes) has. Thread: engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

class StopMatcher {
 public:
  // No stop string is empty (validate sees to that). They are not copied, and outlive the matcher.
  explicit StopMatcher(const std::vector<std::string>& stops);

  // Appends to `out` the bytes that can't belong to a stop string any more. On a match: those
  // before it, and the index of the stop string; what follows is dropped, and nothing may be fed
  // any more.
  [[nodiscard]] std::optional<std::size_t> feed(std::string_view bytes, std::string& out);

  // The text ends without a match: appends what was held back.
  void flush(std::string& out);

 private:
  struct Automaton {
    const std::string* stop;
    std::vector<std::uint32_t>
        fallback;  // for each length matched: the longest proper border of that prefix
    std::uint32_t matched = 0;

    void advance(char byte) noexcept;
  };

  std::vector<Automaton> automata_;
  std::string held_;
};

}  // namespace sluice
