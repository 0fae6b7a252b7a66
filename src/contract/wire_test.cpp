#include "contract/wire.h"

#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "inference.pb.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using testing::Not;
using Request = inference::GenerateRequest;

struct Refusal {
  const char* field;  // as the message names it
  std::function<void(Request&)> change;
};

Error refuse(const std::function<void(Request&)>& change) {
  Request request;
  request.set_model("local");
  request.add_messages()->set_role("user");
  change(request);
  Result<GenerationRequest> result = from_wire(std::move(request));
  EXPECT_FALSE(result);
  return result ? Error{Code::kInternal, "accepted"} : result.error();
}

TEST(Wire, AFieldThatIsNotServedIsRefusedByName) {
  const std::vector<Refusal> rows = {
      {"response_format.json_object",
       [](Request& r) { r.mutable_response_format()->set_json_object(true); }},
      {"response_format.json_schema",
       [](Request& r) { r.mutable_response_format()->set_json_schema("{}"); }},
      {"response_format.grammar",
       [](Request& r) { r.mutable_response_format()->set_grammar("root"); }},
      {"tools", [](Request& r) { r.add_tools(); }},
      {"tool_choice", [](Request& r) { r.mutable_tool_choice(); }},
      {"echo", [](Request& r) { r.set_echo(true); }},
      {"messages[0].name", [](Request& r) { r.mutable_messages(0)->set_name("Ada"); }},
      {"messages[0].tool_calls", [](Request& r) { r.mutable_messages(0)->add_tool_calls(); }},
      {"messages[0].tool_call_id",
       [](Request& r) { r.mutable_messages(0)->set_tool_call_id("1"); }},
  };
  for (const Refusal& row : rows) {
    const Error error = refuse(row.change);
    EXPECT_EQ(error.code, Code::kUnimplemented) << row.field;
    EXPECT_EQ(error.message, std::string(row.field) + " is not served");
  }
}

TEST(Wire, DefaultsOfUnservedFieldsAreNoRequestForThem) {
  Request request;
  request.mutable_response_format()->set_text(true);
  request.set_echo(false);
  EXPECT_TRUE(from_wire(std::move(request)));
}

TEST(Wire, WhatExcludesEachOtherIsRefused) {
  const std::vector<Refusal> rows = {
      {"prompt and messages", [](Request& r) { r.set_prompt(""); }},
      {"messages[0] has both content and parts",
       [](Request& r) {
         r.mutable_messages(0)->set_content("a");
         r.mutable_messages(0)->add_parts();
       }},
      {"messages[0].mime_type",
       [](Request& r) {
         r.mutable_messages(0)->set_mime_type("image/png");
         r.mutable_messages(0)->add_parts();
       }},
  };
  for (const Refusal& row : rows) {
    const Error error = refuse(row.change);
    EXPECT_EQ(error.code, Code::kInvalidArgument) << row.field;
    EXPECT_THAT(error.message, HasSubstr(row.field));
  }
}

TEST(Wire, AnUnknownRoleIsNamedWithoutTheClientsRawBytes) {
  const auto role = [](std::string name) {
    return refuse([&](Request& r) { r.mutable_messages(0)->set_role(name); });
  };
  EXPECT_EQ(role("banana").code, Code::kInvalidArgument);
  EXPECT_THAT(role("banana").message, HasSubstr("messages[0].role is \"banana\""));
  EXPECT_THAT(role("User").message, HasSubstr("\"User\""));
  EXPECT_THAT(role("").message, HasSubstr("\"\""));
  EXPECT_THAT(role("a\n\x1B[2Jé").message, HasSubstr("\"a???2J??\""));
  EXPECT_THAT(role(std::string(1000, 'x')).message, HasSubstr("\"" + std::string(32, 'x') + "\""));
}

TEST(Wire, EveryRoleHasItsMeaningAndDeveloperIsSystem) {
  Request request;
  for (const char* role : {"system", "developer", "user", "assistant", "tool"}) {
    request.add_messages()->set_role(role);
  }
  const Result<GenerationRequest> taken = from_wire(std::move(request));
  ASSERT_TRUE(taken);
  std::vector<Role> roles;
  for (const Message& message : taken->prompt.messages) roles.push_back(message.role);
  EXPECT_THAT(roles, testing::ElementsAre(Role::kSystem, Role::kSystem, Role::kUser,
                                          Role::kAssistant, Role::kTool));
}

TEST(Wire, AnEmptyRequestHasTheContractsDefaults) {
  Request request;
  const Result<GenerationRequest> taken = from_wire(std::move(request));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->sampling.temperature, 1.0F);
  EXPECT_EQ(taken->sampling.top_p, 1.0F);
  EXPECT_EQ(taken->sampling.repetition_penalty, 1.0F);
  EXPECT_FALSE(taken->sampling.seed);
  EXPECT_FALSE(taken->sampling.top_logprobs);
  EXPECT_FALSE(taken->stopping.max_tokens);
  EXPECT_FALSE(taken->prompt.raw);
  EXPECT_TRUE(taken->prompt.messages.empty());
  EXPECT_EQ(taken->n, 1);
}

TEST(Wire, ZeroIsNotAbsent) {
  Request request;
  request.set_temperature(0);
  request.set_max_tokens(0);
  request.set_top_p(0);
  request.set_repetition_penalty(0);
  request.set_seed(0);
  request.set_top_logprobs(0);
  request.set_n(0);
  request.set_prompt("");
  const Result<GenerationRequest> taken = from_wire(std::move(request));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->sampling.temperature, 0.0F);
  EXPECT_EQ(taken->stopping.max_tokens, 0);
  EXPECT_EQ(taken->sampling.top_p, 0.0F);
  EXPECT_EQ(taken->sampling.repetition_penalty, 0.0F);
  EXPECT_EQ(taken->sampling.seed, 0U);
  EXPECT_EQ(taken->sampling.top_logprobs, 0);
  EXPECT_EQ(taken->n, 0);
  EXPECT_EQ(taken->prompt.raw, "");
}

TEST(Wire, EveryServedFieldArrives) {
  Request request;
  request.set_model("m");
  request.set_temperature(0.5F);
  request.set_max_tokens(7);
  request.set_top_p(0.25F);
  request.set_top_k(3);
  request.set_min_p(0.125F);
  request.set_seed(42);
  request.add_stop("a");
  request.add_stop("b");
  request.set_frequency_penalty(-1);
  request.set_presence_penalty(-2);
  request.set_repetition_penalty(1.5F);
  (*request.mutable_logit_bias())[9] = -3;
  request.set_top_logprobs(4);
  request.set_n(2);
  request.set_priority(-5);
  request.set_session_id("s");
  request.set_ignore_eos(true);
  request.set_min_tokens(6);
  inference::Message& message = *request.add_messages();
  message.set_role("user");
  message.add_parts()->set_content("x");
  message.add_parts()->set_content("y");
  message.mutable_parts(1)->set_mime_type("image/png");

  const Result<GenerationRequest> taken = from_wire(std::move(request));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->model, "m");
  EXPECT_EQ(taken->sampling.temperature, 0.5F);
  EXPECT_EQ(taken->sampling.top_p, 0.25F);
  EXPECT_EQ(taken->sampling.top_k, 3);
  EXPECT_EQ(taken->sampling.min_p, 0.125F);
  EXPECT_EQ(taken->sampling.seed, 42U);
  EXPECT_EQ(taken->sampling.frequency_penalty, -1.0F);
  EXPECT_EQ(taken->sampling.presence_penalty, -2.0F);
  EXPECT_EQ(taken->sampling.repetition_penalty, 1.5F);
  EXPECT_THAT(taken->sampling.logit_bias, testing::ElementsAre(std::pair(9, -3.0F)));
  EXPECT_EQ(taken->sampling.top_logprobs, 4);
  EXPECT_EQ(taken->stopping.max_tokens, 7);
  EXPECT_EQ(taken->stopping.min_tokens, 6);
  EXPECT_TRUE(taken->stopping.ignore_eos);
  EXPECT_THAT(taken->stopping.stop, testing::ElementsAre("a", "b"));
  EXPECT_EQ(taken->n, 2);
  EXPECT_EQ(taken->priority, -5);
  EXPECT_EQ(taken->session_id, "s");
  ASSERT_EQ(taken->prompt.messages.size(), 1U);
  ASSERT_EQ(taken->prompt.messages[0].parts.size(), 2U);
  EXPECT_EQ(taken->prompt.messages[0].parts[0].bytes, "x");
  EXPECT_EQ(taken->prompt.messages[0].parts[1].mime_type, "image/png");
}

TEST(Wire, CacheHintsArrive) {
  Request request;
  inference::Message& message = *request.add_messages();
  message.set_role("user");
  message.add_parts()->set_content("x");
  message.add_parts()->set_cache_breakpoint(true);
  inference::CacheHints& cache = *request.mutable_cache();
  cache.set_no_cache(true);
  cache.set_no_store(true);
  cache.set_ttl_seconds(0);
  cache.set_salt("tenant");
  const Result<GenerationRequest> taken = from_wire(std::move(request));
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->prompt.messages[0].parts[0].cache_breakpoint);
  EXPECT_TRUE(taken->prompt.messages[0].parts[1].cache_breakpoint);
  EXPECT_TRUE(taken->cache.no_cache);
  EXPECT_TRUE(taken->cache.no_store);
  EXPECT_EQ(taken->cache.ttl_seconds, 0U);
  EXPECT_EQ(taken->cache.salt, "tenant");
}

TEST(Wire, LargeContentIsMovedNotCopied) {
  Request request;
  inference::Message& message = *request.add_messages();
  message.set_role("user");
  message.set_content(std::string(1 << 20, 'x'));
  const char* const bytes = message.content().data();
  const Result<GenerationRequest> taken = from_wire(std::move(request));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->prompt.messages[0].parts[0].bytes.data(), bytes);
}

TEST(Wire, AFieldFromANewerContractIsIgnored) {
  Request newer;
  newer.GetReflection()->MutableUnknownFields(&newer)->AddVarint(1000, 1);
  Request request;
  ASSERT_TRUE(request.ParseFromString(newer.SerializeAsString()));
  EXPECT_TRUE(from_wire(std::move(request)));
}

TEST(Wire, CountTokensTakesAPromptAsGenerateDoes) {
  inference::CountTokensRequest raw;
  raw.set_prompt("abc");
  EXPECT_EQ(from_wire(std::move(raw))->raw, "abc");
  inference::CountTokensRequest both;
  both.set_prompt("abc");
  both.add_messages()->set_role("user");
  EXPECT_EQ(from_wire(std::move(both)).error().code, Code::kInvalidArgument);
}

Delta delta(std::uint32_t index, std::uint32_t tokens, std::string bytes) {
  Delta delta;
  delta.index = index;
  delta.tokens = tokens;
  delta.bytes = std::move(bytes);
  return delta;
}

TEST(ResponseEncoder, CountsTokensAndOffsetsForEachChoiceAndNamesTheModelOnce) {
  ResponseEncoder encoder("tiny", 5, 2);
  inference::GenerateResponse out;
  encoder.encode(delta(0, 2, "abc"), out);
  EXPECT_EQ(out.model(), "tiny");
  EXPECT_EQ(out.prompt_tokens(), 5U);
  EXPECT_EQ(out.completion_tokens(), 2U);
  EXPECT_EQ(out.offset(), 0U);
  EXPECT_EQ(out.delta(), "abc");
  EXPECT_EQ(out.finish_reason(), inference::FINISH_REASON_UNSPECIFIED);
  EXPECT_FALSE(out.done());

  encoder.encode(delta(1, 1, "x"), out);
  EXPECT_EQ(out.model(), "");
  EXPECT_EQ(out.index(), 1U);
  EXPECT_EQ(out.offset(), 0U);
  EXPECT_EQ(out.completion_tokens(), 1U);

  encoder.encode(delta(0, 1, "d"), out);
  EXPECT_EQ(out.index(), 0U);
  EXPECT_EQ(out.offset(), 3U);
  EXPECT_EQ(out.completion_tokens(), 3U);
}

TEST(ResponseEncoder, TheLastDeltaOfAChoiceSaysWhyItEnded) {
  ResponseEncoder encoder("tiny", 5, 1);
  inference::GenerateResponse out;
  Delta last = delta(0, 1, "");
  last.finish_reason = FinishReason::kStop;
  last.matched_stop = "END";
  encoder.encode(std::move(last), out);
  EXPECT_EQ(out.finish_reason(), inference::FINISH_REASON_STOP);
  EXPECT_EQ(out.matched_stop(), "END");
  last = delta(0, 1, "");
  last.finish_reason = FinishReason::kLength;
  encoder.encode(std::move(last), out);
  EXPECT_EQ(out.finish_reason(), inference::FINISH_REASON_LENGTH);
  EXPECT_EQ(out.matched_stop(), "");
}

TEST(ResponseEncoder, TheEndIsLaidOverTheLastDelta) {
  ResponseEncoder encoder("tiny", 5, 2);
  inference::GenerateResponse out;
  encoder.encode(delta(1, 2, "abc"), out);
  Usage usage;
  usage.prompt_tokens = 5;
  usage.completion_tokens = 9;
  usage.cached_tokens = 3;
  usage.cache_write_tokens = 4;
  usage.timings.queued = std::chrono::microseconds{11};
  usage.timings.prefill = std::chrono::microseconds{12};
  usage.timings.decode = std::chrono::microseconds{13};
  usage.timings.parked = std::chrono::microseconds{14};
  usage.timings.recomputed_tokens = 15;
  encoder.encode_end(usage, out);
  EXPECT_EQ(out.delta(), "abc");
  EXPECT_EQ(out.index(), 1U);
  EXPECT_TRUE(out.done());
  EXPECT_EQ(out.completion_tokens(), 9U);
  EXPECT_EQ(out.cached_tokens(), 3U);
  EXPECT_EQ(out.cache_write_tokens(), 4U);
  EXPECT_EQ(out.timings().queued_us(), 11U);
  EXPECT_EQ(out.timings().prefill_us(), 12U);
  EXPECT_EQ(out.timings().decode_us(), 13U);
  EXPECT_EQ(out.timings().parked_us(), 14U);
  EXPECT_EQ(out.timings().recomputed_tokens(), 15U);
}

TEST(ResponseEncoder, AnAnswerOfOneMessageNamesTheModelToo) {
  const ResponseEncoder encoder("tiny", 5, 1);
  inference::GenerateResponse out;
  encoder.encode_end({}, out);
  EXPECT_EQ(out.model(), "tiny");
}

TEST(ResponseEncoder, LogprobsKeepTheirOrder) {
  ResponseEncoder encoder("tiny", 5, 1);
  Delta with = delta(0, 1, "a");
  with.logprobs = {{{7, -0.5F, "a"}, {{7, -0.5F, "a"}, {8, -1.5F, "\xFF"}}}};
  inference::GenerateResponse out;
  encoder.encode(std::move(with), out);
  ASSERT_EQ(out.logprobs_size(), 1);
  EXPECT_EQ(out.logprobs(0).token(), 7);
  EXPECT_EQ(out.logprobs(0).logprob(), -0.5F);
  ASSERT_EQ(out.logprobs(0).top_size(), 2);
  EXPECT_EQ(out.logprobs(0).top(1).piece(), "\xFF");
}

TEST(Wire, EveryCodeHasItsGrpcAndItsHttpStatus) {
  const std::vector<std::pair<Code, int>> codes = {
      {Code::kInvalidArgument, 400},   {Code::kUnauthenticated, 401},
      {Code::kPermissionDenied, 403},  {Code::kNotFound, 404},
      {Code::kResourceExhausted, 429}, {Code::kCancelled, 499},
      {Code::kInternal, 500},          {Code::kUnimplemented, 501},
      {Code::kUnavailable, 503},       {Code::kDeadlineExceeded, 504},
  };
  for (const auto& [code, http] : codes) {
    EXPECT_EQ(to_http(code), http);
    const grpc::Status status = to_grpc({code, "why"});
    EXPECT_EQ(static_cast<int>(status.error_code()), static_cast<int>(code));
    EXPECT_EQ(status.error_message(), "why");
    inference::Status item;
    to_wire(Error{code, "why"}, item);
    EXPECT_EQ(item.code(), static_cast<int>(code));
    EXPECT_EQ(item.message(), "why");
  }
}

TEST(Wire, ARefusalSaysWhenToTryAgainIfThatIsKnown) {
  inference::Status out;
  to_wire(Error{Code::kResourceExhausted, "full", std::chrono::milliseconds{1500}}, out);
  EXPECT_EQ(out.retry_after_ms(), 1500U);
  out.Clear();
  to_wire(Error{Code::kInternal, "broken"}, out);
  EXPECT_FALSE(out.has_retry_after_ms());
}

TEST(Wire, LoadArrivesWhole) {
  inference::Load out;
  to_wire(Load{1, 2, 3, 4, 5, 6.5F, 7, true}, out);
  EXPECT_EQ(out.running(), 1U);
  EXPECT_EQ(out.waiting(), 2U);
  EXPECT_EQ(out.parked(), 3U);
  EXPECT_EQ(out.kv_used_tokens(), 4U);
  EXPECT_EQ(out.kv_capacity_tokens(), 5U);
  EXPECT_EQ(out.tokens_per_second(), 6.5F);
  EXPECT_EQ(out.prefill_backlog_tokens(), 7U);
  EXPECT_TRUE(out.draining());
}

}  // namespace
}  // namespace sluice
