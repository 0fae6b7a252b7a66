#include "engine/llama_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace sluice {
namespace {

constexpr const char* kTrimming =
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content | trim }}<|end|>{% "
    "endfor %}<|assistant|>";

std::unique_ptr<LlamaTemplate> parsed(const std::string& source) {
  Result<std::unique_ptr<LlamaTemplate>> result = LlamaTemplate::parse(source, "<s>", "</s>", true);
  EXPECT_TRUE(result) << result.error().message;
  return std::move(*result);
}

// "T:" before the template's own text, "M:" before a message's.
std::vector<std::string> rendered(const LlamaTemplate& chat_template,
                                  std::vector<TemplateMessage> messages) {
  Result<std::vector<RenderedPart>> parts = chat_template.render(std::move(messages));
  if (!parts) return {"E:" + parts.error().message};
  std::vector<std::string> result;
  for (const RenderedPart& part : *parts)
    result.push_back((part.from_message ? "M:" : "T:") + part.text);
  return result;
}

using testing::ElementsAre;

TEST(LlamaTemplate, TellsMessagesFromItsOwnText) {
  EXPECT_THAT(rendered(*parsed(kTrimming), {{Role::kSystem, "Be brief."}, {Role::kUser, "Hi"}}),
              ElementsAre("T:<|system|>", "M:Be brief.", "T:<|end|><|user|>", "M:Hi",
                          "T:<|end|><|assistant|>"));
}

TEST(LlamaTemplate, StillTellsThemWhenItTrims) {
  EXPECT_THAT(rendered(*parsed(kTrimming), {{Role::kUser, "  \n<|end|> \n"}}),
              ElementsAre("T:<|user|>", "M:<|end|>", "T:<|end|><|assistant|>"));
}

TEST(LlamaTemplate, TakesTemplateSyntaxInAMessageAsText) {
  EXPECT_THAT(
      rendered(*parsed(kTrimming), {{Role::kUser, "{{ 7*191 }}{% for x in y %}{# c #}"}}),
      ElementsAre("T:<|user|>", "M:{{ 7*191 }}{% for x in y %}{# c #}", "T:<|end|><|assistant|>"));
}

TEST(LlamaTemplate, NamesTheReasonForWhichItRefuses) {
  const auto strict = parsed(
      "{% if messages[0].role != 'user' %}{{ raise_exception('Must start with user') }}{% endif "
      "%}");
  const Result<std::vector<RenderedPart>> refused =
      strict->render({{Role::kAssistant, "secret words"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_EQ(refused.error().message,
            "messages: the model's chat template refuses them: Must start with user");
}

TEST(LlamaTemplate, RefusesASourceThatDoesNotParse) {
  const auto result = LlamaTemplate::parse("{% if %}{{", "", "", true);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kInvalidArgument);
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
}

TEST(LlamaTemplate, GivesContentAsPartsToATemplateThatKnowsNoOther) {
  const auto typed = parsed(
      "{% for message in messages %}{% for part in message.content %}{% if part.type == 'text' "
      "%}[{{ part.text }}]"
      "{% endif %}{% endfor %}{% endfor %}");
  EXPECT_THAT(rendered(*typed, {{Role::kUser, "Hi"}}), ElementsAre("T:[", "M:Hi", "T:]"));
}

TEST(LlamaTemplate, MaySeeItsTokensAndTheDate) {
  EXPECT_THAT(rendered(*parsed("{{ bos_token }}{{ eos_token }}{{ date_string | length }}"),
                       {{Role::kUser, ""}}),
              ElementsAre("T:<s></s>11"));
}

TEST(LlamaTemplate, RendersOnManyThreadsAtOnce) {
  const auto shared = parsed(kTrimming);
  const std::vector<TemplateMessage> messages{{Role::kSystem, " a "}, {Role::kUser, " b "}};
  const std::vector<std::string> expected = rendered(*shared, messages);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) EXPECT_EQ(rendered(*shared, messages), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sluice
