// StopMatcher, fed in pieces of any size, against a search of the whole text.
#include "scheduler/stop_matcher.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "input.h"

namespace sluice {
namespace {

struct Match {
  std::size_t stop;   // index
  std::size_t begin;  // in the text
};

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// The match that ends first in `text`; of those that end there, the longest.
std::optional<Match> naive_match(std::string_view text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::optional<Match> found;
    for (std::size_t i = 0; i < stops.size(); ++i) {
      if (!ends_with(text.substr(0, end), stops[i])) continue;
      const std::size_t begin = end - stops[i].size();
      if (!found || begin < found->begin) found = Match{i, begin};
    }
    if (found) return found;
  }
  return std::nullopt;
}

// Length of the longest end of `text` that is the beginning of a stop string.
std::size_t naive_held(std::string_view text, const std::vector<std::string>& stops) {
  std::size_t held = 0;
  for (const std::string& stop : stops) {
    for (std::size_t length = 1; length < stop.size(); ++length) {
      if (ends_with(text, std::string_view(stop).substr(0, length))) held = std::max(held, length);
    }
  }
  return held;
}

void check(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMostText = 512;  // the naive search is cubic
  fuzz::Input input(data, std::min(size, kMostText));
  std::vector<std::string> stops(input.number(4));
  for (std::string& stop : stops) {
    stop = input.bytes(1 + input.number(7));
    if (stop.empty()) stop = std::string(1, 'x');
  }

  StopMatcher matcher(stops);
  std::string text;
  std::string out;
  while (!input.empty()) {
    const std::string_view piece = input.bytes(input.number(5));
    text += piece;
    const std::optional<std::size_t> matched = matcher.feed(piece, out);
    const std::optional<Match> expected = naive_match(text, stops);
    CHECK(matched.has_value() == expected.has_value(), "a stop string is found with its last byte");
    if (matched) {
      CHECK(stops[*matched] == stops[expected->stop],
            "the first to be complete, the longest of two");
      CHECK(out == text.substr(0, expected->begin), "all before the stop string, and none of it");
      return;
    }
    CHECK(out == text.substr(0, text.size() - naive_held(text, stops)), "no byte is held in vain");
  }
  matcher.flush(out);
  CHECK(out == text, "without a match not a byte is missing");
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::check(data, size);
  return 0;
}
