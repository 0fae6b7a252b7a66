#include "gateway/base64.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice {
namespace {

TEST(Base64, TheVectorsOfTheRfcGoBothWays) {
  constexpr std::string_view kVectors[][2] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [bytes, text] : kVectors) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), std::string(bytes));
  }
}

TEST(Base64, EveryByteComesBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
}

TEST(Base64, PaddingMayBeMissing) { EXPECT_EQ(from_base64("Zm8"), "fo"); }

TEST(Base64, AnythingElseIsRefused) {
  for (const std::string_view text : {"Z", "Zg=", "Zg===", "====", "Z===", "Zm9v Zg==", "Zm9v\n",
                                      "Zm9_", "Zg==Zg==", "Zm\xFF="}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace sluice
