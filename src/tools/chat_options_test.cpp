#include "tools/chat_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/folder.h"

namespace sluice {
namespace {

using testing::HasSubstr;

class ChatOptionsTest : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& bytes) const {
    return folder_.write(name, bytes);
  }
  static Result<std::optional<ChatOptions>> parse(std::vector<std::string> words) {
    words.insert(words.begin(), "chat");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    return parse_chat_options(static_cast<int>(argv.size()), argv.data());
  }
  static std::string fault(const std::vector<std::string>& words) {
    const auto options = parse(words);
    return options ? "accepted" : options.error().message;
  }

 private:
  const TestFolder folder_;
};

TEST_F(ChatOptionsTest, NothingGivenIsTheContractsDefaultsButForTheSampling) {
  const auto options = parse({});
  ASSERT_TRUE(options && *options);
  EXPECT_EQ((*options)->model, "local");
  EXPECT_EQ((*options)->temperature, 0.2F);
  EXPECT_EQ((*options)->top_p, 0.9F);
  EXPECT_FALSE((*options)->server || (*options)->prompt || (*options)->max_tokens ||
               (*options)->seed || (*options)->timeout || (*options)->tls);
}

TEST_F(ChatOptionsTest, WordsAreOnePromptAndOfAFlagTheLastCounts) {
  const auto options =
      parse({"--server", "a:1", "why", "--server", "b:2", "is it", "--timeout", "0.5"});
  ASSERT_TRUE(options && *options);
  EXPECT_EQ((*options)->server, "b:2");
  EXPECT_EQ((*options)->prompt, "why is it");
  EXPECT_EQ((*options)->timeout, std::chrono::milliseconds{500});
}

TEST_F(ChatOptionsTest, EveryFileGoesAlongWithItsType) {
  const auto options = parse({"--file", file("a.txt", "text"), "--file", file("b.png", "\xFF")});
  ASSERT_TRUE(options && *options);
  ASSERT_EQ((*options)->files.size(), 2U);
  EXPECT_EQ((*options)->files[0].bytes, "text");
  EXPECT_EQ((*options)->files[0].mime_type, "text/plain");
  EXPECT_EQ((*options)->files[1].mime_type, "image/png");
}

TEST_F(ChatOptionsTest, AKeyIsTheFirstLineOfItsFile) {
  const auto options = parse({"--api-key-file", file("key", "secret-1\r\nmore\n")});
  ASSERT_TRUE(options && *options);
  EXPECT_EQ((*options)->api_key, "secret-1");
  for (const char* bad : {"", "\nsecret", "two words", "tab\t", "caf\xC3\xA9"}) {
    const std::string message = fault({"--api-key-file", file("key", bad)});
    EXPECT_THAT(message, HasSubstr("--api-key-file"));
    EXPECT_THAT(message, HasSubstr("not a key"));
  }
}

TEST_F(ChatOptionsTest, WhatIsNoFileOrHasNoEndIsRefused) {
  for (const char* flag : {"--file", "--api-key-file", "--tls-ca"}) {
    for (const char* path : {"/", "/proc/self/mem", "/dev/zero"}) {
      EXPECT_THAT(fault({flag, path}), testing::AllOf(HasSubstr(flag), HasSubstr(path)));
    }
  }
}

TEST_F(ChatOptionsTest, TheHighestSeedIsASeed) {
  const auto options = parse({"--seed", "18446744073709551615"});
  ASSERT_TRUE(options && *options);
  EXPECT_EQ((*options)->seed, 18446744073709551615U);
}

TEST_F(ChatOptionsTest, AFaultNamesItsFlag) {
  const std::string pem = file("pem", "x");
  EXPECT_THAT(fault({"--file", "no-such-file"}), HasSubstr("no-such-file (--file)"));
  EXPECT_THAT(fault({"--tls-ca", "no-such-file"}), HasSubstr("no-such-file (--tls-ca)"));
  EXPECT_THAT(fault({"--tls-ca", pem, "--tls-cert", pem}), HasSubstr("--tls-key"));
  EXPECT_THAT(fault({"--tls-cert", pem, "--tls-key", pem}), HasSubstr("--tls-ca"));
  EXPECT_THAT(fault({"--temperature", "warm"}), HasSubstr("--temperature"));
  for (const char* value : {"0", "-1", "nan", "inf", "1e7", ""})
    EXPECT_THAT(fault({"--timeout", value}), HasSubstr("--timeout"));
  for (const char* value : {"-1", "18446744073709551616", "1.5", ""})
    EXPECT_THAT(fault({"--seed", value}), HasSubstr("--seed"));
  EXPECT_THAT(fault({"--server", ""}), HasSubstr("--server"));
  EXPECT_THAT(fault({"--no-such-flag"}), HasSubstr("--no-such-flag"));
}

}  // namespace
}  // namespace sluice
