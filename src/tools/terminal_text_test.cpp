#include "tools/terminal_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice {
namespace {

std::string show(const std::vector<std::string>& deltas) {
  TerminalText text;
  std::string shown;
  for (const std::string& delta : deltas) shown += text.push(delta);
  return shown + text.finish();
}

TEST(TerminalText, ACharacterCutByDeltasIsShownWhole) {
  EXPECT_EQ(show({"\xF0\x9F", "\x8C\x8D", "\xD1", "\x8C", "\xE4\xBD", "\xA0"}),
            "\xF0\x9F\x8C\x8D\xD1\x8C\xE4\xBD\xA0");
  TerminalText text;
  EXPECT_EQ(text.push("a\xE4\xBD"), "a");
  EXPECT_EQ(text.push("\xA0"), "\xE4\xBD\xA0");
}

TEST(TerminalText, BytesThatAreNoCharacterAreReplacedAndNotHeld) {
  EXPECT_EQ(show({"\xFF"}), "\xEF\xBF\xBD");
  EXPECT_EQ(show({"a\xC3", "b"}),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(show({"\xF0\x9F\x8C"}), "\xEF\xBF\xBD");
  EXPECT_EQ(show({"\x80\x80"}), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(TerminalText, WhatWouldSteerTheTerminalIsReplaced) {
  EXPECT_EQ(show({"a\x1B]0;title\x07", "\r\b"}),
            "a\xEF\xBF\xBD]0;title\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(show({"\xC2\x9B"
                  "2J"}),
            "\xEF\xBF\xBD"
            "2J");
  EXPECT_EQ(show({"\xC2", "\x9B"}), "\xEF\xBF\xBD");
  EXPECT_EQ(show({"line\n\ttab \xC2\xA0"}), "line\n\ttab \xC2\xA0");
}

TEST(TerminalText, ValidTextKeepsAllThatIsText) {
  EXPECT_EQ(valid_text("caf\xC3\xA9\x1B"), "caf\xC3\xA9\x1B");
  EXPECT_EQ(valid_text(std::string("a\0b\xC3", 4)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
}

TEST(TerminalText, AnErrorStaysOneLine) {
  EXPECT_EQ(one_line("a\nb\x1B[2J\xFF"), "a b\xEF\xBF\xBD[2J\xEF\xBF\xBD");
}

}  // namespace
}  // namespace sluice
