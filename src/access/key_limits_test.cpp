#include "access/key_limits.h"

#include <gtest/gtest.h>

#include <sstream>

namespace sluice {
namespace {

Result<KeyLimits> parse(const std::string& fields) {
  KeyLimits limits;
  std::istringstream words(fields);
  for (std::string word; words >> word;) {
    if (auto parsed = parse_key_limit(word, limits); !parsed) return tl::unexpected(parsed.error());
  }
  return limits;
}

TEST(KeyLimits, TextAndValuesAreTheSame) {
  const std::string text = " rpm=60 tpm=100000 streams=8 models=a,org/b trusted";
  const auto limits = parse(text);
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->requests_per_minute, 60U);
  EXPECT_EQ(limits->tokens_per_minute, 100'000U);
  EXPECT_EQ(limits->streams, 8U);
  EXPECT_EQ(limits->models, (std::vector<std::string>{"a", "org/b"}));
  EXPECT_TRUE(limits->trusted);
  EXPECT_EQ(to_text(*limits), text);
  EXPECT_EQ(to_text(KeyLimits{}), "");
}

TEST(KeyLimits, AFaultNamesTheFieldAndNotItsText) {
  for (const auto& [fields, named] :
       std::vector<std::pair<std::string, std::string>>{{"rpm=0", "rpm"},
                                                        {"rpm=", "rpm"},
                                                        {"rpm", "rpm"},
                                                        {"tpm=-1", "tpm"},
                                                        {"tpm=1000000001", "tpm"},
                                                        {"tpm=99999999999", "tpm"},
                                                        {"streams=8x", "streams"},
                                                        {"rpm=1 rpm=2", "rpm"},
                                                        {"models=", "models"},
                                                        {"models=a,,b", "models"},
                                                        {"models=a models=b", "models"},
                                                        {"s3cret=1", "rpm=N"},
                                                        {"s3cret", "rpm=N"},
                                                        {"trusted=no", "rpm=N"}}) {
    const auto limits = parse(fields);
    ASSERT_FALSE(limits) << fields;
    EXPECT_NE(limits.error().message.find(named), std::string::npos) << limits.error().message;
    EXPECT_EQ(limits.error().message.find("s3cret"), std::string::npos);
  }
}

TEST(KeyLimits, WithoutModelsAllAreAllowed) {
  EXPECT_TRUE(allows_model({}, "anything"));
  const KeyLimits limits{.models = {"a", "b"}};
  EXPECT_TRUE(allows_model(limits, "b"));
  EXPECT_FALSE(allows_model(limits, "c"));
  EXPECT_FALSE(allows_model(limits, ""));
}

}  // namespace
}  // namespace sluice
