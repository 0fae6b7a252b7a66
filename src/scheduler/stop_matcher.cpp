#include "scheduler/stop_matcher.h"

#include <algorithm>

namespace sluice {
namespace {

// fallback[k]: length of the longest proper prefix of stop[0, k) that is also its suffix.
std::vector<std::uint32_t> borders(const std::string& stop) {
  std::vector<std::uint32_t> fallback(stop.size() + 1, 0);
  std::uint32_t border = 0;
  for (std::size_t i = 1; i < stop.size(); ++i) {
    while (border > 0 && stop[i] != stop[border]) border = fallback[border];
    if (stop[i] == stop[border]) ++border;
    fallback[i + 1] = border;
  }
  return fallback;
}

}  // namespace

void StopMatcher::Automaton::advance(char byte) noexcept {
  while (matched > 0 && (*stop)[matched] != byte) matched = fallback[matched];
  if ((*stop)[matched] == byte) ++matched;
}

StopMatcher::StopMatcher(const std::vector<std::string>& stops) {
  automata_.reserve(stops.size());
  for (const std::string& stop : stops) automata_.push_back({&stop, borders(stop)});
}

std::optional<std::size_t> StopMatcher::feed(std::string_view bytes, std::string& out) {
  if (automata_.empty()) {
    out += bytes;
    return std::nullopt;
  }
  for (const char byte : bytes) {
    held_ += byte;
    const Automaton* complete = nullptr;
    for (Automaton& automaton : automata_) {
      automaton.advance(byte);
      if (automaton.matched < automaton.stop->size()) continue;
      if (complete == nullptr || automaton.matched > complete->matched) complete = &automaton;
    }
    if (complete != nullptr) {
      out.append(held_, 0, held_.size() - complete->matched);
      held_.clear();
      return static_cast<std::size_t>(complete - automata_.data());
    }
  }
  const auto longest = std::max_element(
      automata_.begin(), automata_.end(),
      [](const Automaton& a, const Automaton& b) { return a.matched < b.matched; });
  const std::size_t released = held_.size() - longest->matched;
  out.append(held_, 0, released);
  held_.erase(0, released);
  return std::nullopt;
}

void StopMatcher::flush(std::string& out) {
  out += held_;
  held_.clear();
}

}  // namespace sluice
