#include "gateway/openai_messages.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/concat.h"
#include "gateway/test_openai.h"

namespace sluice {
namespace {

using test::chat;
using test::refusal;

std::string with_messages(std::string_view messages) {
  return concat(R"({"model":"m","messages":)", messages, "}");
}

std::string with_content(std::string_view content) {
  return with_messages(concat(R"([{"role":"user","content":)", content, "}]"));
}

std::string with_part(std::string_view part) { return with_content(concat("[", part, "]")); }

Message first_message(std::string body) {
  auto parsed = chat(std::move(body));
  EXPECT_TRUE(parsed) << refusal(parsed);
  return parsed ? parsed->generations[0].prompt.messages.at(0) : Message{};
}

TEST(OpenAiMessages, OddShapesAreRefusedByTheirPath) {
  const std::pair<const char*, const char*> rows[] = {
      {"null", "messages missing_required_parameter"},
      {"[]", "messages missing_required_parameter"},
      {R"("hi")", "messages invalid_type"},
      {"{}", "messages invalid_type"},
      {"[1]", "messages[0] invalid_type"},
      {R"([{"content":"x"}])", "messages[0].role missing_required_parameter"},
      {R"([{"role":1,"content":"x"}])", "messages[0].role invalid_type"},
      {R"([{"role":"banana","content":"x"}])", "messages[0].role invalid_value"},
      {R"([{"role":"User","content":"x"}])", "messages[0].role invalid_value"},
      {R"([{"role":"tool","content":"x"}])", "messages[0].role unsupported_parameter"},
      {R"([{"role":"user"}])", "messages[0].content missing_required_parameter"},
      {R"([{"role":"user","content":null}])", "messages[0].content missing_required_parameter"},
      {R"([{"role":"user","content":7}])", "messages[0].content invalid_type"},
      {R"([{"role":"user","content":{}}])", "messages[0].content invalid_type"},
      {R"([{"role":"user","content":[]}])", "messages[0].content invalid_value"},
      {R"([{"role":"user","content":["x"]}])", "messages[0].content[0] invalid_type"},
      {R"([{"role":"user","content":"a"},{"role":"user","content":[{"type":"text"}]}])",
       "messages[1].content[0].text missing_required_parameter"},
      {R"([{"role":"user","content":[{"type":"hologram"}]}])",
       "messages[0].content[0].type invalid_value"},
      {R"([{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]}])",
       "messages[0].tool_calls unsupported_parameter"},
      {R"([{"role":"user","name":"Ann","content":"u"}])", "messages[0].name unsupported_parameter"},
      {R"([{"role":"assistant","content":"","function_call":{"name":"f"}}])",
       "messages[0].function_call unsupported_parameter"},
  };
  for (const auto& [messages, expected] : rows) {
    EXPECT_EQ(refusal(chat(with_messages(messages))), expected) << messages;
  }
}

TEST(OpenAiMessages, RolesComeDownToTheContracts) {
  const auto parsed = chat(with_messages(
      R"([{"role":"developer","content":"d"},{"role":"system","content":"s"},
          {"role":"user","name":"","content":"u"},{"role":"assistant","content":"a"}])"));
  ASSERT_TRUE(parsed);
  const auto& messages = parsed->generations[0].prompt.messages;
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[0].role, Role::kSystem);
  EXPECT_EQ(messages[1].role, Role::kSystem);
  EXPECT_EQ(messages[2].role, Role::kUser);
  EXPECT_EQ(messages[3].role, Role::kAssistant);
  EXPECT_EQ(messages[3].parts.at(0).bytes, "a");
  EXPECT_EQ(parsed->unknown_fields, 0U);
}

TEST(OpenAiMessages, AnAssistantsTurnMayBeEmpty) {
  for (const char* turn :
       {R"([{"role":"assistant","content":null,"tool_calls":[]}])", R"([{"role":"assistant"}])"}) {
    EXPECT_TRUE(first_message(with_messages(turn)).parts.empty());
  }
  EXPECT_EQ(first_message(with_messages(R"([{"role":"assistant","content":""}])")).parts.size(),
            1U);
  const Message refused =
      first_message(with_messages(R"([{"role":"assistant","content":null,"refusal":"I won't"}])"));
  EXPECT_EQ(refused.parts.at(0).bytes, "I won't");
}

TEST(OpenAiMessages, PartsKeepTheirOrderBytesAndTypes) {
  const Message message = first_message(with_content(R"([
      {"type":"text","text":"see \ud83d\ude00"},
      {"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw==","detail":"low"}},
      {"type":"input_image","image_url":"data:image/jpeg;base64,/9g="},
      {"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}},
      {"type":"input_audio","input_audio":{"data":"SUQz","format":"mp3"}},
      {"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"}},
      {"type":"file","file":{"file_data":"AAEC"}},
      {"type":"refusal","refusal":"no"}])"));
  const std::pair<std::string, std::string> expected[] = {
      {"see \xF0\x9F\x98\x80", ""},
      {"\x89PNG", "image/png"},
      {"\xFF\xD8", "image/jpeg"},
      {"RIF", "audio/wav"},
      {"ID3", "audio/mpeg"},
      {"%PD", "application/pdf"},
      {std::string("\0\1\2", 3), "application/octet-stream"},
      {"no", ""},
  };
  ASSERT_EQ(message.parts.size(), std::size(expected));
  for (std::size_t i = 0; i < message.parts.size(); ++i) {
    EXPECT_EQ(message.parts[i].bytes, expected[i].first) << i;
    EXPECT_EQ(message.parts[i].mime_type, expected[i].second) << i;
  }
}

TEST(OpenAiMessages, NothingIsFetchedAndNothingIsGuessed) {
  const std::string at = "messages[0].content[0].";
  const std::pair<const char*, const char*> rows[] = {
      {R"({"type":"image_url","image_url":{"url":"http://169.254.169.254/x"}})",
       "image_url.url unsupported_parameter"},
      {R"({"type":"image_url","image_url":{"url":"file:///etc/passwd"}})",
       "image_url.url unsupported_parameter"},
      {R"({"type":"image_url","image_url":{}})", "image_url.url missing_required_parameter"},
      {R"({"type":"image_url"})", "image_url missing_required_parameter"},
      {R"({"type":"image_url","image_url":7})", "image_url invalid_type"},
      {R"({"type":"image_url","image_url":{"url":"data:image/png,abc"}})",
       "image_url.url invalid_value"},
      {R"({"type":"image_url","image_url":{"url":"data:;base64,AAAA"}})",
       "image_url.url invalid_value"},
      {R"({"type":"image_url","image_url":{"url":"data:image/p\r\nng;base64,AAAA"}})",
       "image_url.url invalid_value"},
      {R"({"type":"image_url","image_url":{"url":"data:image/png;base64"}})",
       "image_url.url invalid_value"},
      {R"({"type":"image_url","image_url":{"url":"data:image/png;base64,****"}})",
       "image_url.url invalid_value"},
      {R"({"type":"input_image","file_id":"f"})", "file_id unsupported_parameter"},
      {R"({"type":"input_audio"})", "input_audio missing_required_parameter"},
      {R"({"type":"input_audio","input_audio":{"data":"AA==","format":"ogg"}})",
       "input_audio.format invalid_value"},
      {R"({"type":"input_audio","input_audio":{"format":"wav"}})",
       "input_audio.data missing_required_parameter"},
      {R"({"type":"file","file":{"file_id":"f"}})", "file.file_id unsupported_parameter"},
      {R"({"type":"input_file","file_url":"http://x/"})", "file_url unsupported_parameter"},
      {R"({"type":"file","file":{}})", "file.file_data missing_required_parameter"},
      {R"({"type":"file"})", "file missing_required_parameter"},
  };
  for (const auto& [part, expected] : rows) {
    EXPECT_EQ(refusal(chat(with_part(part))), at + expected) << part;
  }
}

TEST(OpenAiMessages, ANulInTextIsTheReplicasToRefuse) {
  EXPECT_EQ(first_message(with_content(R"("a\u0000b")")).parts[0].bytes, std::string("a\0b", 3));
}

TEST(OpenAiMessages, NoErrorRepeatsWhatTheBodyHolds) {
  const auto parsed = chat(with_part(R"({"type":"hunter2","text":"hunter2"})"));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(to_json(parsed.error()).find("hunter2"), std::string::npos);
}

}  // namespace
}  // namespace sluice
