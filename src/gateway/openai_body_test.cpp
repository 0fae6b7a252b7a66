#include "gateway/openai_body.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/concat.h"

namespace sluice {
namespace {

std::string nested(std::size_t levels) {
  // The body's own object is one of them.
  return concat(R"({"x":)", std::string(levels - 1, '['), std::string(levels - 1, ']'), "}");
}

ApiResult<JsonBody> parse(std::string_view body, GatewayLimits limits = {}) {
  return JsonBody::parse(body, limits);
}

TEST(OpenAiBody, WhatIsNotOneJsonObjectIsRefused) {
  const std::string_view bodies[] = {
      "",
      " ",
      "{",
      "}",
      "{:",
      "{}{}",
      "{} x",
      "[]",
      "null",
      "3",
      R"("text")",
      "{'a':1}",
      R"({"a":1,})",
      R"({"a":[1,]})",
      R"({"a":1 /* why */})",
      R"({"a":NaN})",
      R"({"a":Infinity})",
      R"({"a":01})",
      R"({"a":+1})",
      R"({"a":.5})",
      R"({a:1})",
      R"({"a" 1})",
      R"({"a":tru})",
      R"({"a":"x)",
      "{\"a\":\"\n\"}",
      R"({"a":"\x"})",
      R"({"a":"\ud83d"})",
      R"({"a":"\ude00"})",
      R"({"a":"\ud83dx"})",
      R"({"a":"\ud83d\u0041"})",
      "\xEF\xBB\xBF{}",
      "{\"a\":\"\xFF\xFE\xB0\"}",
      "{\"a\":\"\xED\xA0\x80\"}",
      "{\"a\":\"\xC0\x80\"}",
      "{\"a\":\"\xF0\x9F\x98\"}",
      "{\"\xFF\":1}",
  };
  for (const std::string_view body : bodies) {
    const auto parsed = parse(body);
    ASSERT_FALSE(parsed) << body;
    EXPECT_EQ(parsed.error().code, "invalid_json") << body;
    EXPECT_EQ(parsed.error().error.code, Code::kInvalidArgument) << body;
  }
}

TEST(OpenAiBody, TheErrorHoldsNothingOfTheBody) {
  const auto parsed = parse(R"({"secret": "hunter2)");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().error.message.find("hunter2"), std::string::npos);
  EXPECT_EQ(parsed.error().error.message.find("secret"), std::string::npos);
}

TEST(OpenAiBody, EscapesBecomeTheCharactersThatTheyStandFor) {
  const auto parsed = parse(R"({"a":"\ud83d\ude00 \u00e4 \n \u0000 \/"})");
  ASSERT_TRUE(parsed);
  const auto& text = parsed->root().at("a").as_string();
  EXPECT_EQ(std::string_view(text.data(), text.size()),
            std::string_view("\xF0\x9F\x98\x80 \xC3\xA4 \n \0 /", 13));
}

TEST(OpenAiBody, OfAKeyThatStandsTwiceTheLastOneCounts) {
  const auto parsed = parse(R"({"n":1,"n":2})");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->root().size(), 1U);
  EXPECT_EQ(parsed->root().at("n").as_int64(), 2);
}

TEST(OpenAiBody, TheDepthIsBoundedExactly) {
  EXPECT_TRUE(parse(nested(63)));
  EXPECT_TRUE(parse(nested(64)));
  for (const std::size_t levels : {65UL, 100'000UL}) {
    const auto parsed = parse(nested(levels));
    ASSERT_FALSE(parsed);
    EXPECT_NE(parsed.error().error.message.find("--max-json-depth"), std::string::npos);
  }
}

TEST(OpenAiBody, TheNumberOfValuesIsBoundedAndTextIsNotCounted) {
  GatewayLimits limits;
  limits.max_json_values = 10;
  EXPECT_TRUE(parse(R"({"a":[1,2,3,4,5,6,7]})", limits));
  EXPECT_TRUE(parse(R"({"a":",,,,,,,,,,,,[[[[[[[{{{{{{","b":"\",,,,,,,,,,,,\\"})", limits));
  const auto parsed = parse(R"({"a":[1,2,3,4,5,6,7,8,9,10]})", limits);
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().error.message.find("--max-json-values"), std::string::npos);
}

TEST(OpenAiBody, AStringOfBackslashesEndsWhereItEnds) {
  GatewayLimits limits;
  limits.max_json_values = 4;
  EXPECT_TRUE(parse(R"({"a":"\\\\","b":"\\\","})", limits));
  EXPECT_FALSE(parse(R"({"a":"\\\\",1,2,3,4})", limits));
}

}  // namespace
}  // namespace sluice
