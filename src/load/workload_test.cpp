#include "load/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace sluice {
namespace {

Workload made(const WorkloadOptions& options) {
  auto workload = Workload::make(options);
  EXPECT_TRUE(workload);
  return std::move(*workload);
}

std::string text_of(const PlannedRequest& planned) {
  std::string text;
  for (const Message& message : planned.request.prompt.messages)
    text += message.parts[0].bytes + "|";
  return text;
}

TEST(Workload, RequestIsTheSameWhateverWasAskedForBefore) {
  WorkloadOptions options;
  options.prompt_tokens = *LengthDistribution::parse("uniform:5-50", "");
  options.output_tokens = *LengthDistribution::parse("normal:50,10", "");
  const Workload one = made(options);
  const Workload other = made(options);
  static_cast<void>(other.request(3));
  std::set<std::string> different;
  for (std::uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(text_of(one.request(i)), text_of(other.request(i)));
    EXPECT_EQ(one.request(i).request.stopping.max_tokens,
              other.request(i).request.stopping.max_tokens);
    different.insert(text_of(one.request(i)));
  }
  EXPECT_EQ(different.size(), 50U);
  options.seed = 2;
  EXPECT_NE(text_of(made(options).request(0)), text_of(one.request(0)));
}

TEST(Workload, PromptHasAsManyWordsAsTokens) {
  WorkloadOptions options;
  options.prompt_tokens = LengthDistribution(12);
  const std::string text = made(options).request(0).request.prompt.messages.at(0).parts.at(0).bytes;
  EXPECT_EQ(std::count(text.begin(), text.end(), ' '), 11);
}

TEST(Workload, PrefixIsSharedWithinItsGroupAndNoFurther) {
  WorkloadOptions options;
  options.shared_prefix_tokens = 100;
  options.prefix_groups = 3;
  const Workload workload = made(options);
  std::set<std::string> prefixes;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const PlannedRequest planned = workload.request(i);
    ASSERT_EQ(planned.request.prompt.messages.size(), 2U);
    EXPECT_EQ(planned.request.prompt.messages[0].role, Role::kSystem);
    prefixes.insert(planned.request.prompt.messages[0].parts[0].bytes);
  }
  EXPECT_EQ(prefixes.size(), 3U);
}

TEST(Workload, SharesOfSlowReadersAndCancelsAreThoseAskedFor) {
  WorkloadOptions options;
  options.slow_share = 0.25;
  options.cancel_share = 0.5;
  options.cancel_after_tokens = 3;
  const Workload workload = made(options);
  int slow = 0;
  int cancelled = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const PlannedRequest planned = workload.request(i);
    slow += planned.read_tokens_per_second.has_value();
    cancelled += planned.cancel_after_tokens == 3U;
    EXPECT_FALSE(planned.cancel_after);
  }
  EXPECT_NEAR(slow, 1000, 100);
  EXPECT_NEAR(cancelled, 2000, 130);
}

TEST(Workload, PromptsOfAFileComeInTurn) {
  WorkloadOptions options;
  options.prompts_text =
      "{\"prompt\": \"one\", \"output_tokens\": 7}\n\n"
      "{\"messages\": [{\"role\": \"system\", \"content\": \"be\"}, {\"role\": \"user\", "
      "\"content\": "
      "\"two\"}]}\r\n";
  const Workload workload = made(options);
  EXPECT_EQ(text_of(workload.request(0)), "one|");
  EXPECT_EQ(workload.request(0).request.stopping.max_tokens, 7);
  EXPECT_EQ(text_of(workload.request(1)), "be|two|");
  EXPECT_EQ(workload.request(1).request.stopping.max_tokens, 64);
  EXPECT_EQ(text_of(workload.request(2)), "one|");
}

TEST(Workload, LineThatIsNoPromptIsNamed) {
  for (const char* line : {"{", "[]", "{}", "{\"prompt\": 1}", "{\"messages\": []}",
                           "{\"messages\": [{\"role\": \"cat\", \"content\": \"\"}]}",
                           "{\"prompt\": \"a\", \"output_tokens\": 0}"}) {
    WorkloadOptions options;
    options.prompts_text = std::string("{\"prompt\": \"fine\"}\n") + line;
    const auto workload = Workload::make(options);
    ASSERT_FALSE(workload) << line;
    EXPECT_NE(workload.error().message.find("line 2"), std::string::npos) << line;
  }
  WorkloadOptions empty;
  empty.prompts_text = "\n \n";
  EXPECT_FALSE(Workload::make(empty));
}

}  // namespace
}  // namespace sluice
