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
  const auto head = Cors({"*"}).answer_preflight(preflight("content-type,x-stainless-lang"));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 204);
  EXPECT_EQ(head->headers.value("access-control-allow-origin"), "*");
  EXPECT_EQ(head->headers.value("access-control-allow-headers"),
            "authorization, content-type, x-stainless-lang");
  EXPECT_THAT(head->headers.value("access-control-allow-methods"), HasSubstr("POST"));
  EXPECT_EQ(head->headers.value("access-control-max-age"), "86400");
}

TEST(Cors, AuthorizationIsNamedOnce) {
  const auto head = Cors({"*"}).answer_preflight(preflight("Authorization, x-a"));
  EXPECT_EQ(head->headers.value("access-control-allow-headers"), "authorization, x-a");
}

TEST(Cors, WhatIsNoListOfNamesIsNotEchoed) {
  for (const char* text : {"", "a b", "<script>", "x\"y", ";;;"}) {
    const auto head = Cors({"*"}).answer_preflight(preflight(text));
    ASSERT_TRUE(head) << text;
    const auto allowed = head->headers.value("access-control-allow-headers");
    EXPECT_EQ(allowed.find_first_of("<>\";"), std::string_view::npos) << allowed;
  }
}

TEST(Cors, AnOrdinaryOptionsRequestIsNoPreflight) {
  HttpRequest request = preflight("");
  request.headers.remove("access-control-request-method");
  EXPECT_FALSE(Cors({"*"}).answer_preflight(request));
  request = preflight("");
  request.method = "POST";
  EXPECT_FALSE(Cors({"*"}).answer_preflight(request));
}

TEST(Cors, OnlyGivenOriginsAreAllowed) {
  const Cors cors({"https://a.example", "https://b.example"});
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
  Cors({"*"}).add_headers(request, response);
  EXPECT_TRUE(response.fields().empty());
  request.add("origin", "https://a.example");
  Cors({"*"}).add_headers(request, response);
  EXPECT_EQ(response.value("access-control-allow-origin"), "*");
  for (const char* name : {"x-request-id", "retry-after", "retry-after-ms", "grpc-status",
                           "grpc-message", "x-ratelimit-remaining-tokens"}) {
    EXPECT_THAT(response.value("access-control-expose-headers"), HasSubstr(name));
  }
}

}  // namespace
}  // namespace sluice
