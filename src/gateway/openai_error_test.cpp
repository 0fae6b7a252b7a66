#include "gateway/openai_error.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace sluice {
namespace {

using std::chrono::milliseconds;

ApiError api(Code code, std::string message) { return to_api_error({code, std::move(message)}); }

std::string header(const ApiError& error, std::string_view name) {
  return std::string(head_of(error).headers.value(name));
}

TEST(OpenAiError, TheBodyHasOpenAisFourMembers) {
  ApiError error{
      {Code::kInvalidArgument, "stop[0] must not be \"empty\""}, "stop", "invalid_value"};
  EXPECT_EQ(to_json(error),
            R"({"error":{"message":"stop[0] must not be \"empty\"","type":"invalid_request_error",)"
            R"("param":"stop","code":"invalid_value"}})");
  error.param = error.code = "";
  EXPECT_EQ(to_json(error),
            R"({"error":{"message":"stop[0] must not be \"empty\"","type":"invalid_request_error",)"
            R"("param":null,"code":null}})");
}

TEST(OpenAiError, EveryCodeHasItsStatusTypeAndCode) {
  struct Row {
    Code code;
    int status;
    const char* type_and_code;
  };
  const Row rows[] = {
      {Code::kInvalidArgument, 400, R"("type":"invalid_request_error","param":null,"code":null)"},
      {Code::kUnauthenticated, 401,
       R"("type":"authentication_error","param":null,"code":"invalid_api_key")"},
      {Code::kPermissionDenied, 403, R"("type":"permission_error","param":null,"code":null)"},
      {Code::kNotFound, 404,
       R"("type":"invalid_request_error","param":"model","code":"model_not_found")"},
      {Code::kResourceExhausted, 429,
       R"("type":"rate_limit_error","param":null,"code":"rate_limit_exceeded")"},
      {Code::kCancelled, 499, R"("type":"server_error","param":null,"code":null)"},
      {Code::kInternal, 500, R"("type":"server_error","param":null,"code":"internal_error")"},
      {Code::kUnimplemented, 501,
       R"("type":"server_error","param":null,"code":"unsupported_parameter")"},
      {Code::kUnavailable, 503,
       R"("type":"server_error","param":null,"code":"no_replica_available")"},
      {Code::kDeadlineExceeded, 504, R"("type":"timeout_error","param":null,"code":"timeout")"},
  };
  for (const Row& row : rows) {
    const ApiError error = api(row.code, "it failed");
    EXPECT_EQ(head_of(error).status, row.status);
    EXPECT_NE(to_json(error).find(row.type_and_code), std::string::npos) << to_json(error);
  }
}

TEST(OpenAiError, TheParamIsTheFieldThatAReplicaNames) {
  const std::pair<const char*, const char*> rows[] = {
      {"temperature must be from 0 to 2", "temperature"},
      {"stop[3] must not be empty", "stop[3]"},
      {"the content of messages[2] is not valid UTF-8 (byte 3)", "messages[2]"},
      {"messages: 9000 is more than the limit of 4096 (--max-messages)", "messages"},
      {"logit_bias names token 9; this model's tokens are 0 to 5", "logit_bias"},
      {"bytes of stop[0]: 900 is more than the limit of 256 (--max-stop-bytes)", "stop[0]"},
      {"nothing is named", ""},
  };
  for (const auto& [message, param] : rows) {
    EXPECT_EQ(api(Code::kInvalidArgument, message).param, param);
  }
}

TEST(OpenAiError, APromptBeyondTheContextHasOpenAisCode) {
  for (const char* message : {"the prompt has 90 tokens; this model's maximum context length is 64 "
                              "tokens, one of them for the answer",
                              "the prompt has 9 bytes of text; this model's maximum context length "
                              "is 4 tokens, which hold 8 at most"}) {
    EXPECT_EQ(api(Code::kInvalidArgument, message).code, "context_length_exceeded");
  }
}

TEST(OpenAiError, AFullQueueSaysWhenToComeBack) {
  const ApiError error = to_api_error(
      Error{Code::kResourceExhausted, "the queue is full: 9 requests wait", milliseconds(1200)});
  EXPECT_EQ(error.code, "queue_full");
  EXPECT_EQ(header(error, "retry-after"), "2");
  EXPECT_EQ(header(error, "retry-after-ms"), "1200");
  EXPECT_EQ(header(error, "x-should-retry"), "");
}

TEST(OpenAiError, AReplicasDrainHasItsOwnCode) {
  EXPECT_EQ(api(Code::kUnavailable, "the server is shutting down and takes no new requests").code,
            "draining");
  EXPECT_EQ(api(Code::kUnavailable, "connection refused").code, "");
}

TEST(OpenAiError, WhatNoWaitingHelpsAgainstIsNotTriedAgain) {
  const ApiError error = api(Code::kResourceExhausted, "more tokens than a minute holds");
  EXPECT_EQ(header(error, "retry-after"), "");
  EXPECT_EQ(header(error, "x-should-retry"), "false");
}

TEST(OpenAiError, ClientsDoNotRepeatWorkThatWasSpentNorWhatIsNotServed) {
  ApiError error = api(Code::kDeadlineExceeded, "too late");
  EXPECT_EQ(header(error, "x-should-retry"), "");
  error.work_spent = true;
  EXPECT_EQ(header(error, "x-should-retry"), "false");
  EXPECT_EQ(header(api(Code::kUnimplemented, "cache is not served"), "x-should-retry"), "false");
  EXPECT_EQ(api(Code::kUnimplemented, "cache is not served").param, "cache");
}

TEST(OpenAiError, AnUnavailableServerIsAskedAgainInASecond) {
  EXPECT_EQ(header(api(Code::kUnavailable, "draining"), "retry-after"), "1");
  EXPECT_EQ(header(api(Code::kUnauthenticated, "no key"), "www-authenticate"), "Bearer");
}

TEST(OpenAiError, AMessageThatIsNoUtf8StaysJson) {
  EXPECT_NE(to_json(api(Code::kInternal, "a\xFFz")).find("a\xEF\xBF\xBDz"), std::string::npos);
}

}  // namespace
}  // namespace sluice
