#include "gateway/directives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/concat.h"
#include "gateway/test_openai.h"

namespace sluice {
namespace {

using test::chat;
using test::chat_with;
using test::refusal;
using test::TestHeaders;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Routing routing_of(std::string_view members, const TestHeaders& headers = {},
                   bool trusted = false) {
  auto parsed = chat(chat_with(members), headers, trusted);
  EXPECT_TRUE(parsed) << members;
  return parsed ? parsed->routing : Routing{};
}

TEST(Directives, ModelsAreTriedInOrderEachOnce) {
  EXPECT_THAT(routing_of(R"("models":["b","m","c"])").models, ElementsAre("m", "b", "c"));
  EXPECT_THAT(routing_of(R"("fallbacks":["d"])").models, ElementsAre("m", "d"));
  const auto parsed = chat(R"({"models":["a","b"],"messages":[{"role":"user","content":"x"}]})");
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->routing.models, ElementsAre("a", "b"));
  EXPECT_EQ(parsed->generations[0].model, "a");
  EXPECT_EQ(refusal(chat(chat_with(R"("models":["1","2","3","4","5","6","7","8"])"))),
            "models invalid_value");
  EXPECT_EQ(refusal(chat(R"({"messages":[{"role":"user","content":"x"}]})")),
            "model missing_required_parameter");
}

TEST(Directives, ProviderSaysWhichReplicas) {
  const Routing routing = routing_of(
      R"("provider":{"order":["a"],"only":["a","b"],"ignore":["c"],"quantizations":["int4"],
         "allow_fallbacks":false,"sort":{"by":"latency","partition":"none"},"zdr":true})");
  EXPECT_THAT(routing.order, ElementsAre("a"));
  EXPECT_THAT(routing.only, ElementsAre("a", "b"));
  EXPECT_THAT(routing.ignore, ElementsAre("c"));
  EXPECT_THAT(routing.quantizations, ElementsAre("int4"));
  EXPECT_FALSE(routing.allow_fallbacks);
  EXPECT_TRUE(routing.keep_nothing);
  EXPECT_EQ(routing.sort, SortBy::kLatency);
  EXPECT_EQ(routing_of(R"("provider":{"sort":"throughput"})").sort, SortBy::kThroughput);
  EXPECT_EQ(refusal(chat(chat_with(R"("provider":{"sort":"beauty"})"))),
            "provider.sort invalid_value");
  EXPECT_EQ(refusal(chat(chat_with(R"("provider":{"order":"a"})"))), "provider.order invalid_type");
}

TEST(Directives, WhoLetsNothingBeKeptLetsNothingBeCached) {
  const auto parsed = chat(chat_with(R"("provider":{"data_collection":"deny"})"));
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->routing.keep_nothing);
  EXPECT_TRUE(parsed->generations[0].cache.no_store);
  EXPECT_FALSE(routing_of(R"("provider":{"data_collection":"allow"})").keep_nothing);
}

TEST(Directives, UnknownKeysOfProviderAreNamedInWarningsThatFitAHeader) {
  const auto parsed = chat(chat_with("\"provider\":{\"new_key\":1,\"a\\r\\nx-evil: 1\":2}"));
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->warnings, ElementsAre("provider.new_key is not used",
                                            "provider.(a name that can't be shown) is not used"));
}

TEST(Directives, UnknownFieldsAreCountedUnlessAllAreRequired) {
  const auto parsed = chat(chat_with(R"("mystery":1,"moderation":{},"store":true)"));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->unknown_fields, 2U);
  EXPECT_EQ(refusal(chat(chat_with(R"("mystery":1,"provider":{"require_parameters":true})"))),
            "mystery unsupported_parameter");
  EXPECT_EQ(refusal(chat(chat_with(R"("provider":{"require_parameters":true,"max_price":{}})"))),
            "provider.max_price unsupported_parameter");
  EXPECT_EQ(refusal(chat(chat_with(R"("seed":1,"provider":{"require_parameters":true})"))),
            "served");
}

TEST(Directives, TheFirstOfTheSessionsKeysCounts) {
  struct Row {
    const char* members;
    TestHeaders headers;
    const char* key;
  };
  const Row rows[] = {
      {R"("session_id":"body","prompt_cache_key":"p")", {{"X-Session-Id", "header"}}, "body"},
      {R"("prompt_cache_key":"p","user":"u")", {{"X-Session-Id", "header"}}, "header"},
      {R"("prompt_cache_key":"p")", {{"X-SMG-Routing-Key", "smg"}}, "p"},
      {"", {{"X-SMG-Routing-Key", "smg"}, {"openengine-routing-key", "oe"}}, "smg"},
      {"", {{"openengine-routing-key", "oe"}, {"x-claude-code-session-id", "cc"}}, "oe"},
      {"", {{"session_id", "s_"}, {"x-claude-code-session-id", "cc"}}, "cc"},
      {"", {{"session_id", "s_"}, {"x-session-affinity", "sa"}}, "s_"},
      {R"("user":"u")", {{"x-session-affinity", "sa"}}, "sa"},
      {R"("user":"u")", {}, "u"},
  };
  for (const Row& row : rows) {
    const Routing routing = routing_of(row.members, row.headers);
    EXPECT_EQ(routing.affinity, row.key);
    EXPECT_TRUE(routing.affinity_is_session);
  }
}

TEST(Directives, TheBodysSessionGoesAlongAndIsBounded) {
  const auto parsed = chat(chat_with(R"("session_id":"mine")"), {{"x-session-id", "other"}});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->generations[0].session_id, "mine");
  EXPECT_EQ(refusal(chat(chat_with(concat(R"("session_id":")", std::string(256, 's'), "\"")))),
            "served");
  EXPECT_EQ(refusal(chat(chat_with(concat(R"("session_id":")", std::string(257, 's'), "\"")))),
            "session_id invalid_value");
}

TEST(Directives, WithoutASessionRequestsThatBeginAlikeShareAKey) {
  const auto key = [](std::string_view system, std::string_view user, std::string_view later) {
    return chat(concat(R"({"model":"m","messages":[{"role":"system","content":")", system,
                       R"("},{"role":"user","content":")", user,
                       R"("},{"role":"assistant","content":")", later, "\"}]}"))
        ->routing.affinity;
  };
  EXPECT_EQ(key("s", "u", "1"), key("s", "u", "2"));
  EXPECT_NE(key("s", "u", "1"), key("s", "v", "1"));
  EXPECT_NE(key("su", "", "1"), key("s", "u", "1"));
  EXPECT_FALSE(chat(chat_with(""))->routing.affinity_is_session);
}

TEST(Directives, OnlyTrustedCallersNameAMachine) {
  const TestHeaders headers = {{"x-smg-target-worker", "r1"}};
  EXPECT_EQ(routing_of("", headers, true).target, "r1");
  EXPECT_EQ(routing_of("", headers, false).target, "");
}

TEST(Directives, EveryDialectsPriorityHasOneSign) {
  struct Row {
    const char* members;
    TestHeaders headers;
    int priority;
    const char* tier;
  };
  const Row rows[] = {
      {"", {}, 0, ""},
      {R"("priority":-7)", {}, 7, "priority"},
      {R"("priority":3)", {}, -3, "flex"},
      {R"("priority":-2147483648)", {}, 100, "priority"},
      {"", {{"openengine-priority", "9"}}, 9, "priority"},
      {"", {{"openengine-priority", "-900"}}, -100, "flex"},
      {"", {{"x-smg-priority", "bulk"}}, -50, "flex"},
      {"", {{"x-smg-priority", "system"}}, 100, "priority"},
      {"", {{"x-llm-d-inference-objective", "sheddable"}}, -50, "flex"},
      {R"("service_tier":"flex")", {}, -50, "flex"},
      {R"("service_tier":"fast")", {}, 50, "priority"},
      {R"("service_tier":"auto")", {}, 0, "default"},
      {R"("service_tier":"flex","priority":-1)", {{"x-smg-priority", "bulk"}}, 1, "priority"},
  };
  for (const Row& row : rows) {
    const auto parsed = chat(chat_with(row.members), row.headers);
    ASSERT_TRUE(parsed) << row.members;
    EXPECT_EQ(parsed->generations[0].priority, row.priority) << row.members;
    EXPECT_EQ(parsed->shape.service_tier, row.tier) << row.members;
  }
}

TEST(Directives, APriorityHeaderThatIsNotUnderstoodIsOnlyAWarning) {
  const auto parsed = chat(chat_with(""), {{"openengine-priority", "soon"}});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->generations[0].priority, 0);
  EXPECT_THAT(parsed->warnings, ElementsAre("openengine-priority was not understood"));
  EXPECT_EQ(refusal(chat(chat_with(R"("service_tier":"gold")"))), "service_tier invalid_value");
}

}  // namespace
}  // namespace sluice
