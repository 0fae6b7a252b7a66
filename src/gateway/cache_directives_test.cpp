#include "gateway/cache_directives.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/concat.h"
#include "gateway/test_openai.h"

namespace sluice {
namespace {

using test::chat;
using test::chat_with;
using test::refusal;
using test::TestHeaders;

GenerationRequest generation_of(std::string body, const TestHeaders& headers = {}) {
  auto parsed = chat(std::move(body), headers);
  EXPECT_TRUE(parsed);
  return parsed ? parsed->generations[0] : GenerationRequest{};
}

// "no_cache no_store ttl salt", those that are set.
std::string hints(std::string_view members, const TestHeaders& headers = {}) {
  const CacheHints cache = generation_of(chat_with(members), headers).cache;
  std::string out;
  if (cache.no_cache) out += "no_cache ";
  if (cache.no_store) out += "no_store ";
  if (cache.ttl_seconds) out += concat(*cache.ttl_seconds, " ");
  return out + cache.salt;
}

GenerationRequest with_part(std::string_view mark) {
  return generation_of(concat(R"({"model":"m","messages":[{"role":"user","content":[
      {"type":"text","text":"a")",
                              mark, R"(},{"type":"text","text":"b"}]}]})"));
}

TEST(CacheDirectives, EveryDialectsHintsComeDownToOne) {
  EXPECT_EQ(hints(""), "");
  EXPECT_EQ(hints(R"("cache_salt":"t1")"), "t1");
  EXPECT_EQ(hints(R"("cache_prompt":false)"), "no_cache ");
  EXPECT_EQ(hints(R"("cache_prompt":true,"n_cache_reuse":3)"), "");
  EXPECT_EQ(hints(R"("cache":{"no-cache":true,"no-store":true,"namespace":"n","ttl":60})"),
            "no_cache no_store 60 n");
  EXPECT_EQ(hints(R"("prompt_cache_retention":"24h")"), "86400 ");
  EXPECT_EQ(hints(R"("prompt_cache_retention":"in-memory")"), "");
  EXPECT_EQ(hints(R"("prompt_cache_retention":"in_memory")"), "");
  EXPECT_EQ(hints(R"("prompt_cache_options":{"mode":"implicit","ttl":"30m"})"), "1800 ");
  EXPECT_EQ(hints(R"("cache_control":{"type":"ephemeral","ttl":"1h"})"), "3600 ");
}

TEST(CacheDirectives, HttpsCacheControlCounts) {
  EXPECT_EQ(hints("", {{"Cache-Control", "no-cache"}}), "no_cache ");
  EXPECT_EQ(hints("", {{"Cache-Control", "max-age=0, No-Store"}}), "no_cache no_store ");
  EXPECT_EQ(hints("", {{"Cache-Control", "max-age=600, private"}}), "");
}

TEST(CacheDirectives, ExplicitWithoutABreakpointUsesNoCache) {
  EXPECT_EQ(hints(R"("prompt_cache_options":{"mode":"explicit"})"), "no_cache no_store ");
  EXPECT_EQ(
      hints(R"("prompt_cache_options":{"mode":"explicit"},"cache_control":{"type":"ephemeral"})"),
      "");
}

TEST(CacheDirectives, APartsMarkIsABreakpointBehindIt) {
  for (const std::string_view mark :
       {R"(,"cache_control":{"type":"ephemeral","ttl":"5m"})",
        R"(,"prompt_cache_breakpoint":{"mode":"explicit","ttl":"5m"})"}) {
    const GenerationRequest generation = with_part(mark);
    EXPECT_TRUE(generation.prompt.messages[0].parts[0].cache_breakpoint);
    EXPECT_FALSE(generation.prompt.messages[0].parts[1].cache_breakpoint);
    EXPECT_EQ(generation.cache.ttl_seconds, 300U);
  }
}

TEST(CacheDirectives, AMarkOnTheWholeRequestIsABreakpointAtItsEnd) {
  const GenerationRequest generation =
      generation_of(chat_with(R"("cache_control":{"type":"ephemeral"})"));
  EXPECT_TRUE(generation.prompt.messages[0].parts[0].cache_breakpoint);
  EXPECT_EQ(generation.cache.ttl_seconds, std::nullopt);
}

TEST(CacheDirectives, ATimeThatIsNotKnownIsNoError) {
  EXPECT_EQ(hints(R"("cache_control":{"type":"ephemeral","ttl":"a while"})"), "");
  EXPECT_EQ(hints(R"("cache_control":{"type":"ephemeral","ttl":true})"), "");
  EXPECT_EQ(hints(R"("cache_control":{"type":"ephemeral","ttl":"99d"})"), "86400 ");
  EXPECT_EQ(hints(R"("cache_control":{"type":"ephemeral","ttl":"18446744073709551615"})"),
            "86400 ");
  EXPECT_EQ(hints(R"("cache_control":{"type":"ephemeral","ttl":90})"), "90 ");
}

TEST(CacheDirectives, WhatIsNoHintIsRefused) {
  EXPECT_EQ(refusal(chat(chat_with(R"("cache_control":"yes")"))), "cache_control invalid_type");
  EXPECT_EQ(refusal(chat(chat_with(R"("prompt_cache_options":{"mode":"maybe"})"))),
            "prompt_cache_options.mode invalid_value");
}

TEST(CacheDirectives, ASaltLeavesRoomForTheCallersName) {
  const std::string longest(1024 - 64 - 1, 's');
  EXPECT_EQ(hints(concat(R"("cache_salt":")", longest, "\"")), longest);
  EXPECT_EQ(refusal(chat(chat_with(concat(R"("cache_salt":"s)", longest, "\"")))),
            "cache_salt invalid_value");
  EXPECT_EQ(refusal(chat(chat_with(concat(R"("cache":{"namespace":"s)", longest, "\"}")))),
            "cache.namespace invalid_value");
}

}  // namespace
}  // namespace sluice
