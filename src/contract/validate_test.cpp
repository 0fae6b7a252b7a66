#include "contract/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kHighest = std::numeric_limits<std::int32_t>::max();

Limits limits() {
  Limits limits;
  limits.max_messages = 3;
  limits.max_stop_strings = 2;
  limits.max_stop_bytes = 8;
  limits.max_logit_bias = 2;
  limits.max_n = 4;
  return limits;
}

const ServedModel kModel{
    .name = "tiny", .context_tokens = 10, .vocabulary = 100, .longest_piece = 4};

Message user(std::string text, std::string mime_type = "") {
  return {Role::kUser, {{std::move(text), std::move(mime_type)}}};
}

GenerationRequest good() {
  GenerationRequest request;
  request.model = "local";
  request.prompt.messages = {user("hi")};
  return request;
}

struct Row {
  const char* rule;
  std::function<void(GenerationRequest&)> change;
  std::vector<std::string> named;  // in the message. Empty: the request is accepted.
  Code code = Code::kInvalidArgument;
};

void expect_all(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    GenerationRequest request = good();
    row.change(request);
    const Result<void> result = validate(request, limits(), kModel);
    ASSERT_EQ(result.has_value(), row.named.empty()) << (result ? "" : result.error().message);
    if (result) continue;
    EXPECT_EQ(result.error().code, row.code);
    for (const std::string& name : row.named) EXPECT_THAT(result.error().message, HasSubstr(name));
  }
}

TEST(Validate, EveryFloatIsFiniteAndInItsRange) {
  struct Field {
    const char* name;
    float Sampling::*member;
    std::vector<float> good;
    std::vector<float> bad;
  };
  const std::vector<Field> fields = {
      {"temperature", &Sampling::temperature, {0, -0.0F, 1e-45F, 2}, {-0.001F, 2.001F, 1e9F}},
      {"top_p", &Sampling::top_p, {1e-45F, 1}, {0, -0.0F, -1, 1.001F, 2}},
      {"min_p", &Sampling::min_p, {0, 1}, {-0.1F, 1.1F}},
      {"frequency_penalty", &Sampling::frequency_penalty, {-2, 2}, {-2.1F, 2.1F}},
      {"presence_penalty", &Sampling::presence_penalty, {-2, 2}, {-2.1F, 2.1F}},
      {"repetition_penalty",
       &Sampling::repetition_penalty,
       {0.01F, 10},
       {0, -1, 1e-45F, 1e-38F, 0.009F, 10.1F}},
  };
  for (const Field& field : fields) {
    std::vector<float> bad = field.bad;
    bad.insert(bad.end(), {kNan, kInfinity, -kInfinity});
    std::vector<Row> rows;
    for (const float value : field.good) {
      rows.push_back({field.name, [&, value](auto& r) { r.sampling.*field.member = value; }, {}});
    }
    for (const float value : bad) {
      rows.push_back(
          {field.name, [&, value](auto& r) { r.sampling.*field.member = value; }, {field.name}});
    }
    expect_all(rows);
  }
}

TEST(Validate, EveryCountIsInItsRange) {
  expect_all({
      {"top_k 0 is off", [](auto& r) { r.sampling.top_k = 0; }, {}},
      {"top_k", [](auto& r) { r.sampling.top_k = -1; }, {"top_k", "at least 0"}},
      {"top_logprobs 0", [](auto& r) { r.sampling.top_logprobs = 0; }, {}},
      {"top_logprobs 20", [](auto& r) { r.sampling.top_logprobs = 20; }, {}},
      {"top_logprobs 21", [](auto& r) { r.sampling.top_logprobs = 21; }, {"top_logprobs", "20"}},
      {"top_logprobs -1", [](auto& r) { r.sampling.top_logprobs = -1; }, {"top_logprobs"}},
      {"max_tokens above context", [](auto& r) { r.stopping.max_tokens = kHighest; }, {}},
      {"max_tokens 0", [](auto& r) { r.stopping.max_tokens = 0; }, {"max_tokens", "at least 1"}},
      {"max_tokens -1", [](auto& r) { r.stopping.max_tokens = kLowest; }, {"max_tokens"}},
      {"min_tokens alone", [](auto& r) { r.stopping.min_tokens = 5; }, {}},
      {"min_tokens -1", [](auto& r) { r.stopping.min_tokens = -1; }, {"min_tokens", "at least 0"}},
      {"min above max",
       [](auto& r) {
         r.stopping.min_tokens = 6;
         r.stopping.max_tokens = 5;
       },
       {"min_tokens (6)", "max_tokens (5)"}},
      {"min is max",
       [](auto& r) {
         r.stopping.min_tokens = 5;
         r.stopping.max_tokens = 5;
       },
       {}},
      {"n at the limit", [](auto& r) { r.n = 4; }, {}},
      {"n 0", [](auto& r) { r.n = 0; }, {"n must be at least 1"}},
      {"n -1", [](auto& r) { r.n = kLowest; }, {"n must be at least 1"}},
      {"n 10000", [](auto& r) { r.n = 10'000; }, {"n: 10000", "limit of 4", "--max-n"}},
      {"priority", [](auto& r) { r.priority = 100; }, {}},
      {"priority 101", [](auto& r) { r.priority = 101; }, {"priority", "-100 to 100"}},
      {"priority -101", [](auto& r) { r.priority = kLowest; }, {"priority"}},
      {"session_id", [](auto& r) { r.session_id.assign(256, 's'); }, {}},
      {"session_id 257", [](auto& r) { r.session_id.assign(257, 's'); }, {"session_id", "256"}},
      {"cache.salt", [](auto& r) { r.cache.salt.assign(1024, 's'); }, {}},
      {"cache.salt 1025", [](auto& r) { r.cache.salt.assign(1025, 's'); }, {"cache.salt", "1024"}},
  });
}

TEST(Validate, LogitBiasNamesTokensOfTheModelOnly) {
  expect_all({
      {"ends",
       [](auto& r) {
         r.sampling.logit_bias = {{0, -100.0F}, {99, 100.0F}};
       },
       {}},
      {"no token",
       [](auto& r) {
         r.sampling.logit_bias = {{100, 1.0F}};
       },
       {"logit_bias", "token 100", "0 to 99"}},
      {"negative",
       [](auto& r) {
         r.sampling.logit_bias = {{-1, 1.0F}};
       },
       {"logit_bias"}},
      {"value",
       [](auto& r) {
         r.sampling.logit_bias = {{7, 100.5F}};
       },
       {"logit_bias of token 7"}},
      {"NaN",
       [](auto& r) {
         r.sampling.logit_bias = {{7, kNan}};
       },
       {"logit_bias of token 7"}},
      {"inf",
       [](auto& r) {
         r.sampling.logit_bias = {{7, -kInfinity}};
       },
       {"logit_bias"}},
      {"count",
       [](auto& r) {
         r.sampling.logit_bias = {{1, 0.0F}, {2, 0.0F}, {3, 0.0F}};
       },
       {"logit_bias", "limit of 2", "--max-logit-bias"}},
  });
}

TEST(Validate, StopStringsAreFewShortAndNotEmpty) {
  expect_all({
      {"two",
       [](auto& r) {
         r.stopping.stop = {"12345678", "b"};
       },
       {}},
      {"empty",
       [](auto& r) {
         r.stopping.stop = {"a", ""};
       },
       {"stop[1]", "empty"}},
      {"count",
       [](auto& r) { r.stopping.stop.assign(10'000, "x"); },
       {"stop strings: 10000", "limit of 2", "--max-stop-strings"}},
      {"length",
       [](auto& r) { r.stopping.stop = {"123456789"}; },
       {"stop[0]", "9", "limit of 8", "--max-stop-bytes"}},
      {"UTF-8", [](auto& r) { r.stopping.stop = {"\xC3"}; }, {"stop[0]", "UTF-8"}},
      {"NUL", [](auto& r) { r.stopping.stop = {std::string("a\0", 2)}; }, {"stop[0]", "NUL"}},
  });
}

TEST(Validate, OnlyTheServedModelIsFoundAndTheNameAskedForIsNotRepeated) {
  expect_all({
      {"alias", [](auto& r) { r.model = "local"; }, {}},
      {"own name", [](auto& r) { r.model = "tiny"; }, {}},
      {"other", [](auto& r) { r.model = "gpt-9"; }, {"model", "\"tiny\""}, Code::kNotFound},
      {"case", [](auto& r) { r.model = "Tiny"; }, {"model"}, Code::kNotFound},
      {"path", [](auto& r) { r.model = "../tiny"; }, {"model"}, Code::kNotFound},
      {"none", [](auto& r) { r.model.clear(); }, {"model"}, Code::kNotFound},
  });
  EXPECT_THAT(validate_model_name("secret", kModel).error().message,
              testing::Not(HasSubstr("secret")));
}

TEST(Validate, TextIsUtf8WithoutNul) {
  expect_all({
      {"no messages", [](auto& r) { r.prompt.messages.clear(); }, {}},
      {"empty text", [](auto& r) { r.prompt.messages = {user("")}; }, {}},
      {"no parts", [](auto& r) { r.prompt.messages[0].parts.clear(); }, {}},
      {"not UTF-8",
       [](auto& r) {
         r.prompt.messages = {user("a"), user("b\xFF")};
       },
       {"the content of messages[1]", "UTF-8", "byte 1"}},
      {"cut character",
       [](auto& r) { r.prompt.messages = {user("\xE4\xBD")}; },
       {"messages[0]", "UTF-8"}},
      {"NUL",
       [](auto& r) { r.prompt.messages = {user(std::string("a\0b", 3), "text/plain")}; },
       {"messages[0]", "NUL", "byte 1"}},
      {"second part",
       [](auto& r) {
         r.prompt.messages[0].parts.push_back({"\x80", ""});
       },
       {"part 1 of messages[0]"}},
      {"bytes of another type are not text",
       [](auto& r) {
         r.prompt.messages[0].parts.push_back({"\xFF\xD8", "image/jpeg"});
       },
       {}},
      {"prompt not UTF-8",
       [](auto& r) {
         r.prompt = {{}, "\xC0\x80"};
       },
       {"prompt", "UTF-8", "byte 0"}},
      {"prompt with NUL",
       [](auto& r) {
         r.prompt = {{}, std::string(1, '\0')};
       },
       {"prompt", "NUL"}},
      {"empty prompt",
       [](auto& r) {
         r.prompt = {{}, ""};
       },
       {}},
  });
}

TEST(Validate, APromptThatCanNotFitIsRefusedByItsBytes) {
  const std::string fits(40, 'x');  // context_tokens × longest_piece
  expect_all({
      {"messages", [&](auto& r) { r.prompt.messages = {user(fits)}; }, {}},
      {"messages together",
       [&](auto& r) {
         r.prompt.messages = {user(fits), user("x")};
       },
       {"prompt has 41 bytes", "10 tokens", "40"}},
      {"raw",
       [&](auto& r) {
         r.prompt = {{}, fits};
       },
       {}},
      {"raw too long",
       [&](auto& r) {
         r.prompt = {{}, fits + "x"};
       },
       {"prompt has 41 bytes"}},
      {"an image is not text",
       [&](auto& r) { r.prompt.messages = {user(std::string(1000, '\xFF'), "image/png")}; },
       {}},
      {"number of messages",
       [](auto& r) { r.prompt.messages.assign(4, user("")); },
       {"messages: 4", "limit of 3", "--max-messages"}},
  });
}

TEST(Validate, ATokenisedPromptLeavesRoomForOneToken) {
  EXPECT_TRUE(validate_prompt_tokens(9, kModel));
  const Result<void> full = validate_prompt_tokens(10, kModel);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Code::kInvalidArgument);
  EXPECT_THAT(full.error().message, HasSubstr("prompt has 10 tokens"));
  EXPECT_THAT(full.error().message, HasSubstr("maximum context length is 10"));
}

TEST(Validate, AMessageNeverHoldsTheClientsText) {
  GenerationRequest request = good();
  request.prompt.messages = {user("canary\xFF")};
  request.stopping.stop = {"canary"};
  const Result<void> result = validate(request, limits(), kModel);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, testing::Not(HasSubstr("canary")));
}

}  // namespace
}  // namespace sluice
