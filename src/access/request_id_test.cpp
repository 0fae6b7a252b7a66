#include "access/request_id.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

TEST(RequestId, IsWhatIsHarmlessInAnyLogOrHeader) {
  for (const char* good : {"a", "req_1-2.3", "0123456789abcdefABCDEF"})
    EXPECT_TRUE(is_request_id(good)) << good;
  EXPECT_TRUE(is_request_id(std::string(128, 'x')));
  for (const char* bad : {"", "a b", "a\n", "a\"b", "a/b", "\xc3\xa9"})
    EXPECT_FALSE(is_request_id(bad)) << bad;
  EXPECT_FALSE(is_request_id(std::string(129, 'x')));
}

TEST(RequestId, ANewOneIs128BitsAndNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = new_request_id();
    EXPECT_EQ(id.size(), 32U);
    EXPECT_TRUE(is_request_id(id));
    EXPECT_TRUE(seen.insert(id).second);
  }
}

}  // namespace
}  // namespace sluice
