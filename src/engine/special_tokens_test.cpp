#include "engine/special_tokens.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

SpecialTokens chat_tokens() {
  return SpecialTokens(
      {{1, "<|im_start|>"}, {2, "<|im_end|>"}, {3, "<|im"}, {4, "[INST]"}, {5, "!"}});
}

TEST(SpecialTokens, FindsTheLongestThatBeginsAtAPosition) {
  const SpecialTokens tokens = chat_tokens();
  ASSERT_NE(tokens.at("<|im_end|>", 0), nullptr);
  EXPECT_EQ(tokens.at("<|im_end|>", 0)->token, 2);
  EXPECT_EQ(tokens.at("a<|im_e", 1)->token, 3);
  EXPECT_EQ(tokens.at("a[INST]", 1)->token, 4);
}

TEST(SpecialTokens, FindsNothingInOrdinaryTextOrAtTheEnd) {
  const SpecialTokens tokens = chat_tokens();
  EXPECT_EQ(tokens.at("a < b", 2), nullptr);
  EXPECT_EQ(tokens.at("<|im_end|>", 10), nullptr);
  EXPECT_EQ(tokens.at("\xff", 0), nullptr);
}

TEST(SpecialTokens, LeavesOutTextsOfOneByte) { EXPECT_EQ(chat_tokens().at("!", 0), nullptr); }

TEST(SpecialTokens, BrokenUpTextHoldsNoneOfThem) {
  const SpecialTokens tokens = chat_tokens();
  const std::string text = tokens.broken_up("x<|im_<|im_end|>end|>[INST]", "777");
  EXPECT_EQ(text, "x<777|im_<777|im_end|>end|>[777INST]");
  for (std::size_t i = 0; i < text.size(); ++i) EXPECT_EQ(tokens.at(text, i), nullptr) << i;
}

TEST(SpecialTokens, BreakingUpOrdinaryTextChangesNothing) {
  EXPECT_EQ(chat_tokens().broken_up("if (a < b) return [x];", "777"), "if (a < b) return [x];");
}

}  // namespace
}  // namespace sluice
