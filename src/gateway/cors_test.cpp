#include "gateway/cors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using testing::HasSubstr;

HttpRequest preflight(const std::string& headers, const std::string& origin = "https://a.example") {
  HttpRequest request;
  request.method = "OPTIONS";
  request.path = "/v1/chat/completions";
  request.headers.add("Origin", origin);
  request.headers.add("Access-Control-Request-Method", "POST");
  request.headers.add("Access-Control-Request-Headers", headers);
  return request;
}

TEST(Cors, APreflightIsAnsweredWithWhatItAsksForAndAuthorizationByName) {
  const auto head = Cors({"*"}, true).answer_preflight(preflight("content-type,x-stainless-lang"));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 204);
  EXPECT_EQ(head->headers.value("access-control-allow-origin"), "*");
  EXPECT_EQ(head->headers.value("access-control-allow-headers"),
            "authorization, content-type, x-stainless-lang");
  EXPECT_THAT(head->headers.value("access-control-allow-methods"), HasSubstr("POST"));
  EXPECT_EQ(head->headers.value("access-control-max-age"), "86400");
}

TEST(Cors, AuthorizationIsNamedOnce) {
  const auto head = Cors({"*"}, true).answer_preflight(preflight("Authorization, x-a"));
  EXPECT_EQ(head->headers.value("access-control-allow-headers"), "authorization, x-a");
}

TEST(Cors, WhatIsNoListOfNamesIsNotEchoed) {
  for (const char* text : {"", "a b", "<script>", "x\"y", ";;;"}) {
    const auto head = Cors({"*"}, true).answer_preflight(preflight(text));
    ASSERT_TRUE(head) << text;
    const auto allowed = head->headers.value("access-control-allow-headers");
    EXPECT_EQ(allowed.find_first_of("<>\";"), std::string_view::npos) << allowed;
  }
}

TEST(Cors, AnOrdinaryOptionsRequestIsNoPreflight) {
  HttpRequest request = preflight("");
  request.headers.remove("access-control-request-method");
  EXPECT_FALSE(Cors({"*"}, true).answer_preflight(request));
  request = preflight("");
  request.method = "POST";
  EXPECT_FALSE(Cors({"*"}, true).answer_preflight(request));
}

TEST(Cors, OnlyGivenOriginsAreAllowed) {
  const Cors cors({"https://a.example", "https://b.example"}, true);
  for (const auto& [origin, allowed] :
       std::vector<std::pair<std::string, std::string>>{{"https://b.example", "https://b.example"},
                                                        {"https://b.example.evil", ""},
                                                        {"http://b.example", ""},
                                                        {"null", ""}}) {
    const auto head = cors.answer_preflight(preflight("x-a", origin));
    ASSERT_TRUE(head);
    EXPECT_EQ(head->headers.value("access-control-allow-origin"), allowed) << origin;
    EXPECT_EQ(head->headers.value("vary"), "Origin");
  }
}

TEST(Cors, OtherAnswersExposeWhatClientsSteerBy) {
  HttpHeaders request;
  HttpHeaders response;
  Cors({"*"}, true).add_headers(request, response);
  EXPECT_TRUE(response.fields().empty());
  request.add("origin", "https://a.example");
  Cors({"*"}, true).add_headers(request, response);
  EXPECT_EQ(response.value("access-control-allow-origin"), "*");
  for (const char* name : {"x-request-id", "retry-after", "retry-after-ms", "grpc-status",
                           "grpc-message", "x-ratelimit-remaining-tokens"}) {
    EXPECT_THAT(response.value("access-control-expose-headers"), HasSubstr(name));
  }
}

TEST(Cors, WithKeysAndNoListAnyPageMayAsk) {
  const Cors cors({}, true);
  const auto head = cors.answer_preflight(preflight("", "https://a.example"));
  EXPECT_EQ(head->headers.value("access-control-allow-origin"), "*");
}

bool may_call(const Cors& cors, const std::string& origin) {
  HttpHeaders request;
  request.add("origin", origin);
  return cors.may_call(request);
}

TEST(Cors, WithoutKeysOnlyPagesOfThisMachineMayCall) {
  const Cors cors({}, false);
  for (const char* here : {"http://localhost", "http://localhost:3000", "https://127.0.0.1:8443",
                           "http://127.0.0.1", "http://[::1]", "http://[::1]:80"}) {
    EXPECT_TRUE(may_call(cors, here)) << here;
    const auto head = cors.answer_preflight(preflight("", here));
    EXPECT_EQ(head->headers.value("access-control-allow-origin"), here);
  }
  for (const char* elsewhere :
       {"https://evil.example", "http://localhost.evil.example", "http://127.0.0.1.evil.example",
        "http://evil.example:80/localhost", "http://1.2.3.4", "null", "", "localhost", "://",
        "http://user@evil.example", "http://[::1].evil.example", "http://[::2]"}) {
    EXPECT_FALSE(may_call(cors, elsewhere)) << elsewhere;
    const auto head = cors.answer_preflight(preflight("", elsewhere));
    EXPECT_EQ(head->headers.value("access-control-allow-origin"), "");
  }
  EXPECT_TRUE(cors.may_call({})) << "who isn't a page has no origin";
}

TEST(Cors, AListedOriginMayCallWithoutKeysAndTheListIsAll) {
  const Cors cors({"https://a.example"}, false);
  EXPECT_TRUE(may_call(cors, "https://a.example"));
  EXPECT_FALSE(may_call(cors, "http://localhost"));
  EXPECT_TRUE(may_call(Cors({"*"}, false), "https://evil.example"));
  EXPECT_TRUE(may_call(Cors({"https://a.example"}, true), "https://evil.example"))
      << "its browser keeps the answer from it, and it has no key";
}

}  // namespace
}  // namespace sluice
