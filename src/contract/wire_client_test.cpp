#include "contract/wire_client.h"

#include <gmock/gmock.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "contract/wire.h"
#include "inference.pb.h"

namespace sluice {
namespace {

using testing::HasSubstr;

// To the wire, over it, and back.
GenerationRequest there_and_back(const GenerationRequest& request) {
  inference::GenerateRequest sent;
  const Result<void> taken = to_wire(request, sent);
  EXPECT_TRUE(taken) << taken.error().message;
  inference::GenerateRequest received;
  EXPECT_TRUE(received.ParseFromString(sent.SerializeAsString()));
  Result<GenerationRequest> back = from_wire(std::move(received));
  EXPECT_TRUE(back) << back.error().message;
  return back ? *back : GenerationRequest{};
}

void expect_same(const GenerationRequest& a, const GenerationRequest& b) {
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.prompt.raw, b.prompt.raw);
  ASSERT_EQ(a.prompt.messages.size(), b.prompt.messages.size());
  for (std::size_t i = 0; i < a.prompt.messages.size(); ++i) {
    EXPECT_EQ(a.prompt.messages[i].role, b.prompt.messages[i].role);
    ASSERT_EQ(a.prompt.messages[i].parts.size(), b.prompt.messages[i].parts.size());
    for (std::size_t j = 0; j < a.prompt.messages[i].parts.size(); ++j) {
      const Part& part = a.prompt.messages[i].parts[j];
      const Part& other = b.prompt.messages[i].parts[j];
      EXPECT_EQ(part.bytes, other.bytes);
      EXPECT_EQ(part.mime_type, other.mime_type);
      EXPECT_EQ(part.cache_breakpoint, other.cache_breakpoint);
    }
  }
  EXPECT_EQ(a.sampling.temperature, b.sampling.temperature);
  EXPECT_EQ(a.sampling.top_p, b.sampling.top_p);
  EXPECT_EQ(a.sampling.top_k, b.sampling.top_k);
  EXPECT_EQ(a.sampling.min_p, b.sampling.min_p);
  EXPECT_EQ(a.sampling.frequency_penalty, b.sampling.frequency_penalty);
  EXPECT_EQ(a.sampling.presence_penalty, b.sampling.presence_penalty);
  EXPECT_EQ(a.sampling.repetition_penalty, b.sampling.repetition_penalty);
  EXPECT_EQ(a.sampling.seed, b.sampling.seed);
  EXPECT_THAT(a.sampling.logit_bias, testing::UnorderedElementsAreArray(b.sampling.logit_bias));
  EXPECT_EQ(a.sampling.top_logprobs, b.sampling.top_logprobs);
  EXPECT_EQ(a.stopping.max_tokens, b.stopping.max_tokens);
  EXPECT_EQ(a.stopping.min_tokens, b.stopping.min_tokens);
  EXPECT_EQ(a.stopping.ignore_eos, b.stopping.ignore_eos);
  EXPECT_EQ(a.stopping.stop, b.stopping.stop);
  EXPECT_EQ(a.n, b.n);
  EXPECT_EQ(a.priority, b.priority);
  EXPECT_EQ(a.session_id, b.session_id);
  EXPECT_EQ(a.cache.no_cache, b.cache.no_cache);
  EXPECT_EQ(a.cache.no_store, b.cache.no_store);
  EXPECT_EQ(a.cache.ttl_seconds, b.cache.ttl_seconds);
  EXPECT_EQ(a.cache.salt, b.cache.salt);
}

GenerationRequest with_every_field() {
  GenerationRequest request;
  request.model = "m";
  request.prompt.messages = {{Role::kSystem, {{"be", "", true}}},
                             {Role::kUser, {{"a", "text/plain", false}, {"\xFF\0b", "image/png"}}},
                             {Role::kAssistant, {{"c"}}},
                             {Role::kTool, {{""}}}};
  request.sampling = {.temperature = 0.0F,
                      .top_p = 0.25F,
                      .top_k = 3,
                      .min_p = 0.125F,
                      .frequency_penalty = -1,
                      .presence_penalty = -2,
                      .repetition_penalty = 1.5F,
                      .seed = 0,
                      .logit_bias = {{9, -3.0F}, {10, 4.0F}},
                      .top_logprobs = 0};
  request.stopping = {.max_tokens = 7, .min_tokens = 6, .ignore_eos = true, .stop = {"a", "é"}};
  request.n = 2;
  request.priority = -5;
  request.session_id = "s";
  request.cache = {.no_cache = true, .no_store = true, .ttl_seconds = 0, .salt = "tenant"};
  return request;
}

TEST(WireClient, EveryFieldOfARequestComesThrough) {
  expect_same(with_every_field(), there_and_back(with_every_field()));
}

TEST(WireClient, DefaultsAreTheSameOnBothSides) { expect_same({}, there_and_back({})); }

TEST(WireClient, ARawPromptComesThroughEvenEmpty) {
  for (const char* raw : {"", "abc"}) {
    GenerationRequest request;
    request.prompt.raw = raw;
    expect_same(request, there_and_back(request));
  }
}

TEST(WireClient, TextThatProtobufCantHoldIsRefusedByItsField) {
  struct Row {
    const char* field;
    std::function<void(GenerationRequest&)> spoil;
  };
  const std::vector<Row> rows = {
      {"model", [](GenerationRequest& r) { r.model.push_back('\xFF'); }},
      {"session_id", [](GenerationRequest& r) { r.session_id.push_back('\xFF'); }},
      {"cache.salt", [](GenerationRequest& r) { r.cache.salt.push_back('\xFF'); }},
      {"stop[1]",
       [](GenerationRequest& r) {
         r.stopping.stop = {"a", "\xFF"};
       }},
      {"messages[1].mime_type",
       [](GenerationRequest& r) { r.prompt.messages[1].parts[0].mime_type.push_back('\xFF'); }},
  };
  for (const Row& row : rows) {
    GenerationRequest request = with_every_field();
    row.spoil(request);
    inference::GenerateRequest out;
    const Result<void> taken = to_wire(request, out);
    ASSERT_FALSE(taken) << row.field;
    EXPECT_EQ(taken.error().code, Code::kInvalidArgument);
    EXPECT_THAT(taken.error().message, HasSubstr(row.field));
  }
}

TEST(WireClient, CountTokensTakesAPromptAsGenerateDoes) {
  inference::CountTokensRequest out;
  ASSERT_TRUE(to_wire(PromptSource{.messages = {}, .raw = "abc"}, out));
  EXPECT_EQ(from_wire(std::move(out))->raw, "abc");
}

Delta delta(std::uint32_t index, std::uint32_t tokens, std::string bytes) {
  Delta delta;
  delta.index = index;
  delta.tokens = tokens;
  delta.bytes = std::move(bytes);
  return delta;
}

TEST(ResponseDecoder, GivesBackWhatTheEncoderTook) {
  ResponseEncoder encoder("tiny", 5, 2);
  ResponseDecoder decoder(2);
  inference::GenerateResponse message;

  encoder.encode(delta(0, 2, "abc"), message);
  Result<ReceivedDelta> got = decoder.decode(message);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->model, "tiny");
  EXPECT_EQ(got->prompt_tokens, 5U);
  EXPECT_EQ(got->delta.tokens, 2U);
  EXPECT_EQ(got->delta.bytes, "abc");
  EXPECT_FALSE(got->delta.finish_reason);
  EXPECT_FALSE(got->usage);

  Delta other = delta(1, 1, "x");
  other.finish_reason = FinishReason::kStop;
  other.matched_stop = "END";
  other.logprobs = {{{7, -0.5F, "x"}, {{7, -0.5F, "x"}, {8, -1.5F, "\xFF"}}}};
  encoder.encode(std::move(other), message);
  got = decoder.decode(message);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->delta.index, 1U);
  EXPECT_EQ(got->completion_tokens, 1U);
  EXPECT_EQ(got->delta.finish_reason, FinishReason::kStop);
  EXPECT_EQ(got->delta.matched_stop, "END");
  ASSERT_EQ(got->delta.logprobs.size(), 1U);
  EXPECT_EQ(got->delta.logprobs[0].chosen.token, 7);
  ASSERT_EQ(got->delta.logprobs[0].top.size(), 2U);
  EXPECT_EQ(got->delta.logprobs[0].top[1].piece, "\xFF");

  Delta last = delta(0, 3, "d");
  last.finish_reason = FinishReason::kLength;
  encoder.encode(std::move(last), message);
  encoder.encode_end({.prompt_tokens = 5,
                      .completion_tokens = 6,
                      .cached_tokens = 3,
                      .cache_write_tokens = 2,
                      .timings = {.queued = std::chrono::microseconds{11}}},
                     message);
  got = decoder.decode(message);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->delta.tokens, 3U);
  EXPECT_EQ(got->completion_tokens, 5U);
  EXPECT_EQ(got->delta.finish_reason, FinishReason::kLength);
  ASSERT_TRUE(got->usage);
  EXPECT_EQ(got->usage->completion_tokens, 6U);
  EXPECT_EQ(got->usage->cached_tokens, 3U);
  EXPECT_EQ(got->usage->cache_write_tokens, 2U);
  EXPECT_EQ(got->usage->timings.queued.count(), 11);
}

TEST(ResponseDecoder, APeerThatBreaksTheContractIsAnError) {
  ResponseDecoder decoder(1);
  inference::GenerateResponse beyond;
  beyond.set_index(1);
  EXPECT_EQ(decoder.decode(beyond).error().code, Code::kInternal);

  inference::GenerateResponse first;
  first.set_completion_tokens(2);
  EXPECT_TRUE(decoder.decode(first));
  inference::GenerateResponse back;
  back.set_completion_tokens(1);
  EXPECT_EQ(decoder.decode(back).error().code, Code::kInternal);
}

TEST(WireClient, AStatusComesBackWithItsRetryTime) {
  inference::Status wire;
  EXPECT_TRUE(from_wire(wire));
  to_wire(Error{Code::kResourceExhausted, "full", std::chrono::milliseconds{1500}}, wire);
  const Result<void> status = from_wire(wire);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kResourceExhausted);
  EXPECT_EQ(status.error().message, "full");
  EXPECT_EQ(status.error().retry_after, std::chrono::milliseconds{1500});
}

TEST(WireClient, CodesThatWeDontUseComeAsTheNearest) {
  using grpc::StatusCode;
  const std::vector<std::pair<StatusCode, Code>> rows = {
      {StatusCode::UNKNOWN, Code::kInternal},
      {StatusCode::DATA_LOSS, Code::kInternal},
      {StatusCode::OUT_OF_RANGE, Code::kInvalidArgument},
      {StatusCode::UNAVAILABLE, Code::kUnavailable},
      {StatusCode::DEADLINE_EXCEEDED, Code::kDeadlineExceeded},
  };
  for (const auto& [from, to] : rows)
    EXPECT_EQ(from_grpc(grpc::Status(from, "why")).error().code, to);
  EXPECT_TRUE(from_grpc(grpc::Status::OK));
  inference::Status unheard_of;
  unheard_of.set_code(77);
  EXPECT_EQ(from_wire(unheard_of).error().code, Code::kInternal);
}

TEST(WireClient, LoadComesThroughWhole) {
  inference::Load wire;
  to_wire(Load{1, 2, 3, 4, 5, 6.5F, 7, true}, wire);
  const Load load = from_wire(wire);
  EXPECT_EQ(load.running, 1U);
  EXPECT_EQ(load.waiting, 2U);
  EXPECT_EQ(load.parked, 3U);
  EXPECT_EQ(load.kv_used_tokens, 4U);
  EXPECT_EQ(load.kv_capacity_tokens, 5U);
  EXPECT_EQ(load.tokens_per_second, 6.5F);
  EXPECT_EQ(load.prefill_backlog_tokens, 7U);
  EXPECT_TRUE(load.draining);
}

}  // namespace
}  // namespace sluice
