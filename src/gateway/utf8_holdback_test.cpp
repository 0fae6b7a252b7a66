#include "gateway/utf8_holdback.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

constexpr std::string_view kGrin = "\xF0\x9F\x98\x80";
constexpr std::string_view kMark = "\xEF\xBF\xBD";

std::vector<std::string> pieces_of(const std::vector<std::string_view>& cuts) {
  Utf8Holdback holdback;
  std::string scratch;
  std::vector<std::string> pieces;
  for (const std::string_view cut : cuts) pieces.emplace_back(holdback.take(cut, scratch));
  pieces.emplace_back(holdback.flush());
  return pieces;
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  return all;
}

TEST(Utf8Holdback, ACharacterWaitsForItsRestWhereverItIsCut) {
  for (std::size_t cut = 1; cut < kGrin.size(); ++cut) {
    const auto pieces = pieces_of({kGrin.substr(0, cut), kGrin.substr(cut)});
    EXPECT_EQ(pieces, (std::vector<std::string>{"", std::string(kGrin), ""})) << cut;
  }
}

TEST(Utf8Holdback, WholeTextIsGivenBackAsItIs) {
  Utf8Holdback holdback;
  std::string scratch;
  const std::string text = "Größe";
  EXPECT_EQ(holdback.take(text, scratch).data(), text.data());
}

TEST(Utf8Holdback, WhatEndsInsideACharacterEndsInOneMark) {
  EXPECT_EQ(pieces_of({kGrin.substr(0, 3)}), (std::vector<std::string>{"", std::string(kMark)}));
}

TEST(Utf8Holdback, GarbageIsOneMarkForEachBeginningAndNeverHeldBack) {
  EXPECT_EQ(to_valid_utf8("a\xFF\xFE z"), "a" + std::string(kMark) + std::string(kMark) + " z");
  EXPECT_EQ(to_valid_utf8("\xF0\x9F\x98x"), std::string(kMark) + "x");
  EXPECT_EQ(to_valid_utf8("\x80"), kMark);
  EXPECT_EQ(pieces_of({"\xFF"}), (std::vector<std::string>{std::string(kMark), ""}));
}

TEST(Utf8Holdback, TheJoinedTextIsTheSameForEveryCut) {
  const std::string bytes = "a\xF0\x9F\x98\x80\xE0\xB8\x81\xE0\xB8\xC3\xA4\xED\xA0\x80\xF0\x9F";
  const std::string whole = to_valid_utf8(bytes);
  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    for (std::size_t second = first; second <= bytes.size(); ++second) {
      const std::string_view view = bytes;
      EXPECT_EQ(joined(pieces_of({view.substr(0, first), view.substr(first, second - first),
                                  view.substr(second)})),
                whole)
          << first << " " << second;
    }
  }
}

}  // namespace
}  // namespace sluice
