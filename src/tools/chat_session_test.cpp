#include "tools/chat_session.h"

#include <gtest/gtest.h>

#include <string>

#include "inference.pb.h"

namespace sluice {
namespace {

// "role: part|part", a message a line.
std::string conversation(const inference::GenerateRequest& request) {
  std::string text;
  for (const auto& message : request.messages()) {
    text += message.role() + ": ";
    for (const auto& part : message.parts()) text += part.content() + "|";
    text += "\n";
  }
  return text;
}

TEST(ChatSession, EachRequestCarriesTheConversationSoFar) {
  ChatOptions options;
  options.system = "Be brief.";
  ChatSession session(options);
  inference::GenerateRequest request;
  session.ask("one", request);
  EXPECT_EQ(conversation(request), "system: Be brief.|\nuser: one|\n");
  session.answered("1");
  session.ask("two", request);
  EXPECT_EQ(conversation(request), "system: Be brief.|\nuser: one|\nassistant: 1|\nuser: two|\n");
}

TEST(ChatSession, AnUnansweredTurnIsForgotten) {
  const ChatOptions options;
  ChatSession session(options);
  inference::GenerateRequest request;
  session.ask("refused", request);
  session.ask("again", request);
  EXPECT_EQ(conversation(request), "user: again|\n");
}

TEST(ChatSession, FilesGoWithTheFirstPromptOnly) {
  ChatOptions options;
  options.files = {{"\xFF\xD8", "image/jpeg"}};
  ChatSession session(options);
  inference::GenerateRequest request;
  session.ask("what is it", request);
  EXPECT_EQ(conversation(request), "user: \xFF\xD8|\n\n|what is it|\n");
  EXPECT_EQ(request.messages(0).parts(0).mime_type(), "image/jpeg");
  session.answered("a cat");
  session.ask("sure?", request);
  EXPECT_EQ(conversation(request),
            "user: \xFF\xD8|\n\n|what is it|\nassistant: a cat|\nuser: sure?|\n");
  session.clear();
  session.ask("what is it", request);
  EXPECT_EQ(conversation(request), "user: \xFF\xD8|\n\n|what is it|\n");
}

TEST(ChatSession, AnAnswerThatWasCutInsideACharacterCanBeSentBack) {
  const ChatOptions options;
  ChatSession session(options);
  inference::GenerateRequest request;
  session.ask("x", request);
  session.answered(std::string("caf\xC3\xA9 \xF0\x9F") + '\0');
  session.ask("y", request);
  EXPECT_EQ(request.messages(1).parts(0).content(), "caf\xC3\xA9 \xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(ChatSession, SamplingIsAlwaysSaidAndTheRestWhereItIsGiven) {
  ChatOptions options;
  ChatSession session(options);
  inference::GenerateRequest request;
  session.ask("x", request);
  EXPECT_EQ(request.model(), "local");
  EXPECT_EQ(request.temperature(), 0.2F);
  EXPECT_EQ(request.top_p(), 0.9F);
  EXPECT_FALSE(request.has_max_tokens() || request.has_seed());
  options.temperature = 0.0F;
  options.seed = 0;
  session.ask("x", request);
  EXPECT_TRUE(request.has_temperature() && request.has_seed());
  EXPECT_EQ(request.temperature(), 0);
}

}  // namespace
}  // namespace sluice
