#include "contract/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

std::string encode(std::uint32_t point) {
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  if (point < 0x80) return {byte(point)};
  if (point < 0x800) return {byte(0xC0 | point >> 6), byte(0x80 | (point & 0x3F))};
  if (point < 0x10000) {
    return {byte(0xE0 | point >> 12), byte(0x80 | (point >> 6 & 0x3F)),
            byte(0x80 | (point & 0x3F))};
  }
  return {byte(0xF0 | point >> 18), byte(0x80 | (point >> 12 & 0x3F)),
          byte(0x80 | (point >> 6 & 0x3F)), byte(0x80 | (point & 0x3F))};
}

bool is_character(std::uint32_t point) {
  return point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
}

constexpr std::uint32_t kPointsInFourBytes = 0x200000;

TEST(Utf8, EveryCharacterIsValidAndEverySurrogateAndPointBeyondIsNot) {
  for (std::uint32_t point = 0; point < kPointsInFourBytes; ++point) {
    const bool valid = !find_invalid_utf8(encode(point));
    if (valid != is_character(point)) FAIL() << std::hex << point;
  }
}

TEST(Utf8, EveryPrefixOfACharacterIsHeldBackWhole) {
  for (std::uint32_t point = 0; point < kPointsInFourBytes; ++point) {
    if (!is_character(point)) continue;
    const std::string text = "\xC3\xA9" + encode(point);
    for (std::size_t length = 0; length <= text.size() - 2; ++length) {
      const std::size_t held = length == text.size() - 2 ? 0 : length;
      if (incomplete_utf8_tail(std::string_view(text).substr(0, 2 + length)) != held) {
        FAIL() << std::hex << point;
      }
    }
  }
}

struct Invalid {
  const char* rule;
  std::string bytes;
  std::size_t at;
};

TEST(Utf8, TheFirstByteThatDoesNotFitIsNamed) {
  const std::vector<Invalid> rows = {
      {"continuation byte alone", "ab\x80", 2},
      {"overlong in two bytes", "\xC0\x80", 0},
      {"overlong in three bytes", "\xE0\x80\x80", 1},
      {"overlong in four bytes", "\xF0\x8F\xBF\xBF", 1},
      {"surrogate", "x\xED\xA0\x80", 2},
      {"above U+10FFFF", "\xF4\x90\x80\x80", 1},
      {"lead byte that never was", "\xFF\xFE\xB0", 0},
      {"character cut by another",
       "\xE4\xBD"
       "a",
       2},
      {"character cut by the end", "ok \xF0\x9F\x8C", 6},
  };
  for (const Invalid& row : rows) {
    EXPECT_EQ(find_invalid_utf8(row.bytes), row.at) << row.rule;
  }
}

TEST(Utf8, BytesThatCanNeverBecomeValidAreNotHeldBack) {
  for (const std::string& bytes :
       {std::string("\x80"), std::string("\xC0"), std::string("\xE0\x80"), std::string("\xED\xA0"),
        std::string("\xF4\x90"), std::string("\xFF"), std::string("\x80\x80\x80"), std::string()}) {
    EXPECT_EQ(incomplete_utf8_tail(bytes), 0U) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace sluice
