#include "tools/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "testing/folder.h"
#include "tools/command_line.h"
#include "tools/flags.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

struct Values {
  std::uint32_t count = 1;
  std::uint32_t bytes = 1024;
  double share = 1.5;
  bool on = false;
  bool wanted = false;
  std::string text = "given";
  std::vector<std::string> texts;
};

class ConfigFileTest : public testing::Test {
 protected:
  Result<bool> parse(const std::string& text, std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"test", "--config", folder_.write("config.toml", text)});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    CLI::App app("Test.");
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    add_number(app, "count", values_.count, "help", "things");
    add_number(app, "size", values_.bytes, "help", "bytes");
    add_number(app, "share", values_.share, "help", "times", 1.0, 10.0);
    add_boolean(app, "on", values_.on, "help");
    app.add_flag("--wanted", values_.wanted, "help");
    app.add_option("--text,--words", values_.text, "help");
    add_list(app, "texts", values_.texts, "TEXT", "help");
    return parse_command_line(app, static_cast<int>(argv.size()), argv.data());
  }

  void expect_refused(const std::string& text, int line, const std::string& named) {
    const auto parsed = parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message,
                StartsWith(folder_.file("config.toml") + ':' + std::to_string(line) + ": "));
    EXPECT_THAT(parsed.error().message, HasSubstr(named));
  }

  TestFolder folder_;
  Values values_;
};

TEST_F(ConfigFileTest, EveryKindOfValueReachesItsFlag) {
  const auto parsed = parse(
      "# a comment\ncount = 7\nsize = \"2KiB\"\nshare = 2.5\non = true\nwanted = true\n"
      "text = 'a \"b\" = #c'\ntexts = [\"x\", \"y z\"]\n");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(values_.count, 7U);
  EXPECT_EQ(values_.bytes, 2048U);
  EXPECT_EQ(values_.share, 2.5);
  EXPECT_TRUE(values_.on);
  EXPECT_TRUE(values_.wanted);
  EXPECT_EQ(values_.text, "a \"b\" = #c");
  EXPECT_THAT(values_.texts, ElementsAre("x", "y z"));
}

TEST_F(ConfigFileTest, ATextIsAlsoAListOfOneAndWholeNumbersAreNumbers) {
  ASSERT_TRUE(parse("texts = \"x\"\nsize = 4096\nshare = 2\nwanted = false\n"));
  EXPECT_THAT(values_.texts, ElementsAre("x"));
  EXPECT_EQ(values_.bytes, 4096U);
  EXPECT_EQ(values_.share, 2.0);
  EXPECT_FALSE(values_.wanted);
}

TEST_F(ConfigFileTest, AFractionKeepsItsDigits) {
  ASSERT_TRUE(parse("share = 1.23456789012345\n"));
  EXPECT_EQ(values_.share, 1.23456789012345);
}

TEST_F(ConfigFileTest, AnEmptyListIsNoList) {
  for (const char* text : {"texts = []\n", "texts = \"\"\n"}) {
    values_.texts = {"default"};
    ASSERT_TRUE(parse(text));
    EXPECT_THAT(values_.texts, testing::IsEmpty()) << text;
  }
}

TEST_F(ConfigFileTest, TheCommandLineBeatsTheFileAndListsDoNotMix) {
  ASSERT_TRUE(parse("count = 7\ntexts = [\"x\"]\non = true\n",
                    {"--count", "9", "--texts", "a", "--texts", "b"}));
  EXPECT_EQ(values_.count, 9U);
  EXPECT_THAT(values_.texts, ElementsAre("a", "b"));
  EXPECT_TRUE(values_.on);
}

TEST_F(ConfigFileTest, AnUnknownKeyIsRefusedWithItsLine) {
  expect_refused("count = 7\n\n# spelt wrongly\ncuont = 3\n", 4, "--cuont");
  expect_refused("config = \"other.toml\"\n", 1, "--config");
  expect_refused("help = true\n", 1, "--help");
  expect_refused("\"\" = 1\n", 1, "--");
}

TEST_F(ConfigFileTest, AValueOfAnotherTypeIsRefusedWithItsLine) {
  expect_refused("\ncount = \"many\"\n", 2, "count is a number");
  expect_refused("\ncount = \"7\"\n", 2, "count is a number");
  expect_refused("count = true\n", 1, "count is a number");
  expect_refused("count = [1]\n", 1, "count is a number");
  expect_refused("size = true\n", 1, "size is a number of bytes");
  expect_refused("on = 1\n", 1, "on is true or false");
  expect_refused("on = \"true\"\n", 1, "on is true or false");
  expect_refused("wanted = 1\n", 1, "wanted is true or false");
  expect_refused("text = 8080\n", 1, "text is a text");
  expect_refused("text = [\"a\"]\n", 1, "text is a text");
  expect_refused("texts = [\"a\", 1]\n", 1, "texts is a text or an array");
  expect_refused("text = 2026-01-01\n", 1, "text is a text");
}

TEST_F(ConfigFileTest, AValueOutOfRangeIsRefusedWithItsLine) {
  expect_refused("on = true\ncount = 0\n", 2, "--count");
  expect_refused("count = -1\n", 1, "--count");
  expect_refused("count = 1.5\n", 1, "--count");
  expect_refused("share = 11\n", 1, "--share");
  expect_refused("share = nan\n", 1, "--share");
  expect_refused("share = inf\n", 1, "--share");
  expect_refused("size = \"2 parsecs\"\n", 1, "--size");
}

TEST_F(ConfigFileTest, AWrongTypeIsRefusedEvenWhereTheCommandLineWins) {
  const auto parsed = parse("count = \"many\"\n", {"--count", "9"});
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, HasSubstr(":1: "));
}

TEST_F(ConfigFileTest, WhatStandsThereTwiceIsRefusedWithTheSecondLine) {
  expect_refused("count = 1\ncount = 2\n", 2, "count");
  expect_refused("text = \"a\"\n\nwords = \"b\"\n", 3, "line 1");
}

TEST_F(ConfigFileTest, SectionsAreRefusedWithTheirLine) {
  expect_refused("count = 1\n[gateway]\non = true\n", 2, "gateway");
  expect_refused("text.more = \"a\"\n", 1, "text");
  expect_refused("[[texts]]\na = 1\n", 1, "texts");
}

TEST_F(ConfigFileTest, WhatIsNoTomlIsRefusedWithItsLine) {
  expect_refused("count = 1\nthis is not TOML\n", 2, "");
  expect_refused("text = \"open\n", 1, "");
}

}  // namespace
}  // namespace sluice
