#include "gateway/json_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>

namespace sluice {
namespace {

std::string escaped(std::string_view text) {
  std::string out = "<";
  append_json_text(out, text);
  return out + ">";
}

std::string written(float number) {
  std::string out;
  append_json_number(out, number);
  return out;
}

TEST(JsonText, QuotesBackslashesAndControlsAreEscapedAndNothingElse) {
  EXPECT_EQ(escaped(""), "<>");
  EXPECT_EQ(escaped("plain, 1/2 & <b>"), "<plain, 1/2 & <b>>");
  EXPECT_EQ(escaped("\"a\\b\""), R"(<\"a\\b\">)");
  EXPECT_EQ(escaped("\b\t\n\f\r"), R"(<\b\t\n\f\r>)");
  EXPECT_EQ(escaped(std::string_view("\x00\x01\x1f\x7f", 4)), "<\\u0000\\u0001\\u001f\x7f>");
  EXPECT_EQ(escaped("Größe \xF0\x9F\x98\x80"), "<Größe \xF0\x9F\x98\x80>");
}

TEST(JsonText, AStringHasItsQuotes) {
  std::string out;
  append_json_string(out, "say \"hi\"");
  EXPECT_EQ(out, R"("say \"hi\"")");
}

TEST(JsonText, NumbersAreJson) {
  EXPECT_EQ(written(-0.5F), "-0.5");
  EXPECT_EQ(written(0), "0");
  EXPECT_EQ(written(-1e-7F), "-1e-07");
  EXPECT_EQ(written(-std::numeric_limits<float>::infinity()), "-9999");
  EXPECT_EQ(written(std::numeric_limits<float>::quiet_NaN()), "-9999");
  std::string out;
  append_json_number(out, std::uint64_t{18446744073709551615U});
  EXPECT_EQ(out, "18446744073709551615");
}

}  // namespace
}  // namespace sluice
