#include "engine/script.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using Kind = ScriptStep::Kind;

TEST(Script, EveryDirectiveIsUnderstood) {
  const auto script = Script::parse(
      "# a comment\n"
      "prefill 40s\n"
      "\n"
      "piece \"one \"\n"
      "  piece \"\\xF0\\x9f\\n\\t\\\"\\\\\" 20ms\r\n"
      "echo\nfail \"no\"\nbreak \"engine\"\nhang\nblock\nloop");
  ASSERT_TRUE(script) << script.error().message;
  EXPECT_EQ(script->prefill, std::chrono::seconds(40));
  ASSERT_EQ(script->steps.size(), 8U);
  EXPECT_EQ(script->steps[0].text, "one ");
  EXPECT_EQ(script->steps[1].text, "\xf0\x9f\n\t\"\\");
  EXPECT_EQ(script->steps[1].delay, std::chrono::milliseconds(20));
  EXPECT_EQ(script->steps[2].kind, Kind::kEcho);
  EXPECT_EQ(script->steps[3].text, "no");
  EXPECT_EQ(script->steps[4].kind, Kind::kBreak);
  EXPECT_EQ(script->steps[7].kind, Kind::kLoop);
}

TEST(Script, AFaultNamesItsLine) {
  for (const char* line :
       {"pieces \"a\"", "piece a", "piece \"a", "piece \"\\", "piece \"\\q\"", "piece \"\\x1\"",
        "piece \"a\" 5", "piece \"a\" 5min", "piece \"a\" -5ms", "piece \"a\" 5ms more", "prefill",
        "echo now", "hang \"x\""}) {
    SCOPED_TRACE(line);
    const auto script = Script::parse(std::string("hang\n") + line);
    ASSERT_FALSE(script);
    EXPECT_NE(script.error().message.find("line 2"), std::string::npos);
  }
}

TEST(Script, CannotBeginWithLoop) { EXPECT_FALSE(Script::parse("loop")); }

TEST(Script, AMissingFileIsNamed) {
  const auto script = Script::load("/no/such/script");
  ASSERT_FALSE(script);
  EXPECT_EQ(script.error().code, Code::kNotFound);
  EXPECT_NE(script.error().message.find("/no/such/script"), std::string::npos);
}

TEST(Script, WhatIsNoFileOrHasNoEndIsRefused) {
  for (const char* path : {"/", "/proc/self/mem", "/dev/zero"}) {
    const auto script = Script::load(path);
    ASSERT_FALSE(script);
    EXPECT_NE(script.error().message.find(path), std::string::npos);
    EXPECT_NE(script.error().message.find("--script"), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice
