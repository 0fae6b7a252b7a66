#include "scheduler/stop_matcher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice {
namespace {

struct Told {
  std::string text;
  std::optional<std::size_t> match;
};

Told tell(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(stops);
  Told told;
  for (const std::string& piece : pieces) {
    told.match = matcher.feed(piece, told.text);
    if (told.match) return told;
  }
  matcher.flush(told.text);
  return told;
}

TEST(StopMatcher, WithoutStopStringsEverythingPassesAtOnce) {
  const std::vector<std::string> none;
  StopMatcher matcher(none);
  std::string out;
  EXPECT_FALSE(matcher.feed("abc", out));
  EXPECT_EQ(out, "abc");
}

TEST(StopMatcher, AStopStringOverSeveralPiecesLeaksNothingOfItself) {
  const Told told = tell({"four five six"}, {"one ", "four", " fi", "ve s", "ix", " seven"});
  EXPECT_EQ(told.text, "one ");
  EXPECT_EQ(told.match, 0U);
}

TEST(StopMatcher, TextThatOnlyLookedLikeAStopStringIsReleased) {
  EXPECT_EQ(tell({"four five six"}, {"four fi", "x it"}).text, "four fix it");
}

TEST(StopMatcher, HoldsBackNoMoreThanCouldStillMatch) {
  const std::vector<std::string> stops{"abcd"};
  StopMatcher matcher(stops);
  std::string out;
  EXPECT_FALSE(matcher.feed("xxabc", out));
  EXPECT_EQ(out, "xx");
  EXPECT_FALSE(matcher.feed("abc", out));
  EXPECT_EQ(out, "xxabc");
}

TEST(StopMatcher, FindsAMatchThatBeginsInsideAFailedOne) {
  const Told told = tell({"aab"}, {"a", "a", "a", "b", "c"});
  EXPECT_EQ(told.text, "a");
  EXPECT_EQ(told.match, 0U);
}

TEST(StopMatcher, TheFirstToBeCompleteWins) {
  const Told told = tell({"bcdef", "cd"}, {"abcdef"});
  EXPECT_EQ(told.text, "ab");
  EXPECT_EQ(told.match, 1U);
}

TEST(StopMatcher, OfTwoThatEndTogetherTheLongerWins) {
  const Told told = tell({"cd", "bcd"}, {"abcd"});
  EXPECT_EQ(told.text, "a");
  EXPECT_EQ(told.match, 1U);
}

TEST(StopMatcher, MatchesBytesNotCharacters) {
  const Told told = tell({"\x9f\x8c"}, {"\xf0\x9f", "\x8c\x8d"});
  EXPECT_EQ(told.text, "\xf0");
  EXPECT_TRUE(told.match);
}

}  // namespace
}  // namespace sluice
