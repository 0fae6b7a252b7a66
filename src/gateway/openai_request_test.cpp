#include "gateway/openai_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/concat.h"
#include "gateway/test_openai.h"

namespace sluice {
namespace {

using test::chat;
using test::chat_with;
using test::refusal;
using test::request_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

ApiResult<OpenAiRequest> completion(std::string_view members) {
  return parse_completion(request_of(concat(R"({"model":"m")", members, "}")), GatewayLimits{},
                          false);
}

ApiResult<OpenAiRequest> responses(std::string_view members) {
  return parse_responses(request_of(concat(R"({"model":"m")", members, "}")), GatewayLimits{},
                         false);
}

ApiResult<OpenAiEmbedding> embedding(std::string_view members) {
  return parse_embedding(request_of(concat(R"({"model":"m")", members, "}")), GatewayLimits{},
                         false);
}

ApiResult<OpenAiTokenize> tokenize(std::string_view members) {
  return parse_tokenize(request_of(concat(R"({"model":"m")", members, "}")), GatewayLimits{},
                        false);
}

GenerationRequest generation_of(const ApiResult<OpenAiRequest>& parsed) {
  EXPECT_TRUE(parsed) << refusal(parsed);
  return parsed ? parsed->generations.at(0) : GenerationRequest{};
}

TEST(ChatRequest, OptionsReachTheGeneration) {
  const GenerationRequest generation = generation_of(chat(chat_with(
      R"("temperature":0,"top_p":0.5,"top_k":40,"min_p":0.25,"frequency_penalty":-1,
         "presence_penalty":1.5,"repetition_penalty":1.25,"seed":42,"logit_bias":{"7":-100,"9":0.5},
         "n":2,"stop":["a","b"],"min_tokens":3,"ignore_eos":true,"max_tokens":50,
         "logprobs":true,"top_logprobs":4)")));
  const Sampling& sampling = generation.sampling;
  EXPECT_EQ(sampling.temperature, 0);
  EXPECT_EQ(sampling.top_p, 0.5F);
  EXPECT_EQ(sampling.top_k, 40);
  EXPECT_EQ(sampling.min_p, 0.25F);
  EXPECT_EQ(sampling.frequency_penalty, -1);
  EXPECT_EQ(sampling.presence_penalty, 1.5F);
  EXPECT_EQ(sampling.repetition_penalty, 1.25F);
  EXPECT_EQ(sampling.seed, 42U);
  EXPECT_THAT(sampling.logit_bias, ElementsAre(Pair(7, -100.0F), Pair(9, 0.5F)));
  EXPECT_EQ(sampling.top_logprobs, 4);
  EXPECT_EQ(generation.n, 2);
  EXPECT_THAT(generation.stopping.stop, ElementsAre("a", "b"));
  EXPECT_EQ(generation.stopping.min_tokens, 3);
  EXPECT_TRUE(generation.stopping.ignore_eos);
  EXPECT_EQ(generation.stopping.max_tokens, 50);
}

TEST(ChatRequest, NullIsTheSameAsAbsent) {
  const auto parsed = chat(chat_with(
      R"("temperature":null,"top_p":null,"top_k":null,"min_p":null,"frequency_penalty":null,
         "presence_penalty":null,"repetition_penalty":null,"seed":null,"logit_bias":null,"n":null,
         "stop":null,"min_tokens":null,"ignore_eos":null,"max_tokens":null,
         "max_completion_tokens":null,"logprobs":null,"top_logprobs":null,"stream":null,
         "stream_options":null,"tools":null,"tool_choice":null,"functions":null,
         "function_call":null,"parallel_tool_calls":null,"response_format":null,"modalities":null,
         "audio":null,"prediction":null,"models":null,"provider":null,"session_id":null,
         "user":null,"service_tier":null,"priority":null,"cache":null,"cache_salt":null,
         "cache_prompt":null,"cache_control":null,"prompt_cache_key":null,
         "prompt_cache_options":null,"prompt_cache_retention":null,"metadata":null,"store":null,
         "safety_identifier":null)"));
  const GenerationRequest generation = generation_of(parsed);
  EXPECT_EQ(parsed->unknown_fields, 0U);
  EXPECT_EQ(generation.sampling.temperature, 1);
  EXPECT_EQ(generation.sampling.seed, std::nullopt);
  EXPECT_EQ(generation.sampling.top_logprobs, std::nullopt);
  EXPECT_EQ(generation.stopping.max_tokens, std::nullopt);
  EXPECT_THAT(generation.stopping.stop, IsEmpty());
  EXPECT_EQ(generation.n, 1);
  EXPECT_FALSE(parsed->shape.stream);
}

TEST(ChatRequest, TheNewerNameOfMaxTokensWins) {
  const auto max_tokens = [](std::string_view members) {
    return generation_of(chat(chat_with(members))).stopping.max_tokens;
  };
  EXPECT_EQ(max_tokens(R"("max_tokens":5)"), 5);
  EXPECT_EQ(max_tokens(R"("max_completion_tokens":6)"), 6);
  EXPECT_EQ(max_tokens(R"("max_completion_tokens":6,"max_tokens":5)"), 6);
  EXPECT_EQ(max_tokens(R"("max_tokens":50.0)"), 50);
}

TEST(ChatRequest, ValuesOfAnotherTypeAreRefusedByName) {
  const std::pair<const char*, const char*> rows[] = {
      {R"("max_tokens":6000.5)", "max_tokens invalid_type"},
      {R"("max_tokens":-1)", "max_tokens invalid_value"},
      {R"("max_completion_tokens":0)", "max_completion_tokens invalid_value"},
      {R"("max_tokens":"50")", "max_tokens invalid_type"},
      {R"("max_tokens":true)", "max_tokens invalid_type"},
      {R"("max_tokens":3000000000)", "max_tokens invalid_value"},
      {R"("max_tokens":1e300)", "max_tokens invalid_type"},
      {R"("temperature":"0")", "temperature invalid_type"},
      {R"("temperature":1e999)", "temperature invalid_type"},
      {R"("temperature":1e39)", "temperature invalid_type"},
      {R"("temperature":true)", "temperature invalid_type"},
      {R"("seed":1.5)", "seed invalid_type"},
      {R"("stop":5)", "stop invalid_type"},
      {R"("stop":["a",5])", "stop[1] invalid_type"},
      {R"("stop":[5])", "stop invalid_type"},
      {R"("stream":"true")", "stream invalid_type"},
      {R"("stream_options":[])", "stream_options invalid_type"},
      {R"("stream_options":{"include_usage":1})", "stream_options.include_usage invalid_type"},
      {R"("logprobs":5)", "logprobs invalid_type"},
      {R"("top_logprobs":5)", "top_logprobs invalid_value"},
      {R"("logit_bias":[])", "logit_bias invalid_type"},
      {R"("logit_bias":{"x":1})", "logit_bias invalid_value"},
      {R"("logit_bias":{"1":"x"})", "logit_bias invalid_value"},
      {R"("logit_bias":{"1 ":1})", "logit_bias invalid_value"},
      {R"("n":0)", "n invalid_value"},
      {R"("n":100000)", "n invalid_value"},
  };
  for (const auto& [members, expected] : rows) {
    EXPECT_EQ(refusal(chat(chat_with(members))), expected) << members;
  }
}

TEST(ChatRequest, ExtremesThatAreNumbersArriveAsTheyAre) {
  const auto sampling = [](std::string_view members) {
    return generation_of(chat(chat_with(members))).sampling;
  };
  EXPECT_EQ(sampling(R"("temperature":-0.0)").temperature, 0);
  EXPECT_GE(sampling(R"("temperature":1e-45)").temperature, 0);
  EXPECT_EQ(sampling(R"("seed":-1)").seed, ~std::uint64_t{0});
  EXPECT_EQ(sampling(R"("seed":18446744073709551615)").seed, ~std::uint64_t{0});
}

TEST(ChatRequest, StopIsAStringOrAList) {
  const auto stop = [](std::string_view members) {
    return generation_of(chat(chat_with(members))).stopping.stop;
  };
  EXPECT_THAT(stop(R"("stop":"X")"), ElementsAre("X"));
  EXPECT_THAT(stop(R"("stop":["X"])"), ElementsAre("X"));
  EXPECT_THAT(stop(R"("stop":[])"), IsEmpty());
  EXPECT_THAT(stop(R"("stop":"")"), ElementsAre("")) << "which the replica refuses";
}

TEST(ChatRequest, WhatWouldChangeTheAnswerAndIsNotServedIsRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {R"("tools":[{"type":"function"}])", "tools"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("tool_choice":{"type":"function","function":{"name":"f"}})", "tool_choice"},
      {R"("functions":[{"name":"f"}])", "functions"},
      {R"("function_call":{"name":"f"})", "function_call"},
      {R"("response_format":{"type":"json_object"})", "response_format"},
      {R"("response_format":{"type":"json_schema","json_schema":{}})", "response_format"},
      {R"("grammar":"root ::= x")", "grammar"},
      {R"("guided_json":{})", "guided_json"},
      {R"("modalities":["text","audio"])", "modalities"},
      {R"("prediction":{"type":"content","content":"x"})", "prediction"},
      {R"("web_search_options":{})", "web_search_options"},
      {R"("reasoning_effort":"high")", "reasoning_effort"},
      {R"("verbosity":"low")", "verbosity"},
  };
  for (const auto& [members, param] : rows) {
    EXPECT_EQ(refusal(chat(chat_with(members))), concat(param, " unsupported_parameter"));
  }
}

TEST(ChatRequest, WhatChangesNothingIsServed) {
  for (const char* members :
       {R"("tools":[])", R"("tool_choice":"auto")", R"("tool_choice":"none")",
        R"("tools":[{"type":"function"}],"tool_choice":"none")", R"("functions":[])",
        R"("function_call":"none")", R"("response_format":{"type":"text"})",
        R"("modalities":["text"])", R"("parallel_tool_calls":true)", R"("logprobs":false)",
        R"("top_logprobs":0)", R"("stream_options":{"include_obfuscation":false})",
        R"("reasoning_effort":"none")", R"("verbosity":"medium")",
        R"("web_search_options":null)"}) {
    const auto parsed = chat(chat_with(members));
    ASSERT_TRUE(parsed) << refusal(parsed);
    EXPECT_EQ(parsed->unknown_fields, 0U) << members;
  }
}

TEST(ChatRequest, UsageIsIncludedOnlyWhereTheClientSaysTrue) {
  const auto usage = [](std::string_view members) {
    return chat(chat_with(members))->shape.include_usage;
  };
  EXPECT_FALSE(usage(R"("stream":true)"));
  EXPECT_FALSE(usage(R"("stream":true,"stream_options":{})"));
  EXPECT_TRUE(usage(R"("stream":true,"stream_options":{"include_usage":true})"));
}

TEST(CompletionRequest, EachPromptIsAGeneration) {
  const auto parsed = completion(R"(,"prompt":["a","b"],"n":2,"echo":true)");
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->generations.size(), 2U);
  EXPECT_EQ(parsed->generations[0].prompt.raw, "a");
  EXPECT_EQ(parsed->generations[1].prompt.raw, "b");
  EXPECT_EQ(parsed->generations[1].n, 2);
  EXPECT_THAT(parsed->shape.echo, ElementsAre("a", "b"));
}

TEST(CompletionRequest, DefaultsAreOpenAis) {
  const GenerationRequest generation = generation_of(completion(R"(,"prompt":"x")"));
  EXPECT_EQ(generation.stopping.max_tokens, 16);
  EXPECT_EQ(generation.sampling.top_logprobs, std::nullopt);
  EXPECT_EQ(generation_of(completion("")).prompt.raw, "");
  EXPECT_EQ(generation_of(completion(R"(,"logprobs":3)")).sampling.top_logprobs, 3);
}

TEST(CompletionRequest, WhatIsNotServedIsRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {R"(,"prompt":[1,2])", "prompt unsupported_parameter"},
      {R"(,"prompt":[[1,2]])", "prompt unsupported_parameter"},
      {R"(,"prompt":["a",2])", "prompt[1] invalid_type"},
      {R"(,"prompt":[])", "prompt invalid_value"},
      {R"(,"prompt":{})", "prompt invalid_type"},
      {R"(,"suffix":"x")", "suffix unsupported_parameter"},
      {R"(,"best_of":3)", "best_of unsupported_parameter"},
      {R"(,"n":2,"best_of":1)", "best_of invalid_value"},
      {R"(,"echo":true,"logprobs":1)", "echo unsupported_parameter"},
      {R"(,"logprobs":true)", "logprobs invalid_type"},
      {R"(,"prompt":["a","b"],"n":65)", "prompt invalid_value"},
  };
  for (const auto& [members, expected] : rows) {
    EXPECT_EQ(refusal(completion(members)), expected) << members;
  }
  EXPECT_TRUE(completion(R"(,"n":2,"best_of":2,"suffix":"")"));
}

TEST(ResponsesRequest, InputIsAStringOrMessages) {
  const GenerationRequest generation = generation_of(responses(
      R"(,"instructions":"be short","input":[{"role":"user","content":[
         {"type":"input_text","text":"a"}]},{"type":"message","role":"assistant","id":"msg_1",
         "status":"completed","content":[{"type":"output_text","text":"b","annotations":[]}]}],
         "max_output_tokens":9)"));
  const auto& messages = generation.prompt.messages;
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(messages[0].role, Role::kSystem);
  EXPECT_EQ(messages[0].parts.at(0).bytes, "be short");
  EXPECT_EQ(messages[1].parts.at(0).bytes, "a");
  EXPECT_EQ(messages[2].role, Role::kAssistant);
  EXPECT_EQ(messages[2].parts.at(0).bytes, "b");
  EXPECT_EQ(generation.stopping.max_tokens, 9);
  EXPECT_EQ(generation_of(responses(R"(,"input":"hi")")).prompt.messages.at(0).parts.at(0).bytes,
            "hi");
}

TEST(ResponsesRequest, LogprobsComeIfTheyAreIncluded) {
  const auto top = [](std::string_view members) {
    return generation_of(responses(concat(R"(,"input":"x")", members))).sampling.top_logprobs;
  };
  EXPECT_EQ(top(""), std::nullopt);
  EXPECT_EQ(top(R"(,"top_logprobs":2,"include":["reasoning.encrypted_content"])"), std::nullopt);
  EXPECT_EQ(top(R"(,"top_logprobs":2,"include":["message.output_text.logprobs"])"), 2);
}

TEST(ResponsesRequest, WhatNeedsStateOrCutsIsRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "input missing_required_parameter"},
      {R"(,"input":[])", "input missing_required_parameter"},
      {R"(,"input":[{"type":"function_call_output","call_id":"c","output":"x"}])",
       "input[0].type unsupported_parameter"},
      {R"(,"input":"x","previous_response_id":"r")", "previous_response_id unsupported_parameter"},
      {R"(,"input":"x","conversation":"c")", "conversation unsupported_parameter"},
      {R"(,"input":"x","prompt":{"id":"p"})", "prompt unsupported_parameter"},
      {R"(,"input":"x","background":true)", "background unsupported_parameter"},
      {R"(,"input":"x","truncation":"auto")", "truncation unsupported_parameter"},
      {R"(,"input":"x","text":{"format":{"type":"json_schema"}})",
       "text.format unsupported_parameter"},
      {R"(,"input":"x","text":{"verbosity":"low"})", "text.verbosity unsupported_parameter"},
      {R"(,"input":"x","reasoning":{"effort":"high"})", "reasoning.effort unsupported_parameter"},
      {R"(,"input":"x","reasoning":{"effort":null,"summary":"auto"})", "served"},
      {R"(,"input":"x","tools":[{"type":"web_search"}])", "tools unsupported_parameter"},
      {R"(,"input":"x","store":true,"truncation":"disabled","text":{"format":{"type":"text"}})",
       "served"},
  };
  for (const auto& [members, expected] : rows) {
    EXPECT_EQ(refusal(responses(members)), expected) << members;
  }
}

TEST(EmbeddingRequest, InputIsTextInItsOrder) {
  const auto parsed =
      embedding(R"(,"input":["b","a",""],"encoding_format":"base64","dimensions":8)");
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->inputs, ElementsAre("b", "a", ""));
  EXPECT_TRUE(parsed->base64);
  EXPECT_EQ(parsed->dimensions, 8U);
  EXPECT_THAT(embedding(R"(,"input":"x")")->inputs, ElementsAre("x"));
  EXPECT_FALSE(embedding(R"(,"input":"x","encoding_format":"float")")->base64);
}

TEST(EmbeddingRequest, AnythingElseIsRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "input missing_required_parameter"},
      {R"(,"input":[])", "input invalid_value"},
      {R"(,"input":[1,2])", "input unsupported_parameter"},
      {R"(,"input":[[1]])", "input unsupported_parameter"},
      {R"(,"input":7)", "input invalid_type"},
      {R"(,"input":"x","encoding_format":"xyz")", "encoding_format invalid_value"},
      {R"(,"input":"x","dimensions":0)", "dimensions invalid_value"},
  };
  for (const auto& [members, expected] : rows) {
    EXPECT_EQ(refusal(embedding(members)), expected) << members;
  }
}

TEST(TokenizeRequest, ItTakesTextOrMessages) {
  EXPECT_EQ(tokenize(R"(,"prompt":"x")")->prompt.raw, "x");
  EXPECT_EQ(tokenize(R"(,"content":"y")")->prompt.raw, "y");
  EXPECT_EQ(tokenize(R"(,"messages":[{"role":"user","content":"z"}])")->prompt.messages.size(), 1U);
  EXPECT_EQ(refusal(tokenize("")), "prompt missing_required_parameter");
  EXPECT_EQ(tokenize(R"(,"prompt":"x","mystery":1)")->unknown_fields, 1U);
}

}  // namespace
}  // namespace sluice
