#include "replica/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "replica/key_file.h"
#include "testing/folder.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using testing::Not;

// SHA-256 of "abc", from FIPS 180-2.
constexpr const char* kHashOfAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Keys, AreKnownByTheirSha256) {
  const TestFolder folder;
  const auto ring = KeyRing::load(folder.write("keys", std::string("alice ") + kHashOfAbc + "\n"));
  ASSERT_TRUE(ring) << ring.error().message;
  EXPECT_TRUE((*ring)->required());
  EXPECT_TRUE((*ring)->accepts("abc"));
  for (const char* wrong : {"", "ab", "abcd", "ABC", kHashOfAbc})
    EXPECT_FALSE((*ring)->accepts(wrong)) << wrong;
}

TEST(Keys, NobodyNeedsOneWithoutAFile) {
  const KeyRing ring;
  EXPECT_FALSE(ring.required());
  EXPECT_TRUE(ring.accepts(""));
}

TEST(Keys, AnEmptyFileLetsNobodyInButTheProcessItself) {
  const TestFolder folder;
  const auto ring = KeyRing::load(folder.write("keys", "# nobody yet\n\n"));
  ASSERT_TRUE(ring) << ring.error().message;
  EXPECT_FALSE((*ring)->accepts(""));
  EXPECT_TRUE((*ring)->accepts((*ring)->own_key()));
}

TEST(Keys, AFileIsReadAgainWhenItChanged) {
  const TestFolder folder;
  const std::string file = folder.file("keys");
  const auto alice = add_key(file, "alice");
  ASSERT_TRUE(alice) << alice.error().message;
  const auto ring = KeyRing::load(file);
  ASSERT_TRUE(ring);
  EXPECT_FALSE((*ring)->refresh());

  const auto bob = add_key(file, "bob");
  ASSERT_TRUE(bob);
  EXPECT_FALSE((*ring)->accepts(*bob));
  EXPECT_TRUE((*ring)->refresh());
  EXPECT_TRUE((*ring)->accepts(*bob));
  EXPECT_TRUE((*ring)->accepts(*alice));

  ASSERT_TRUE(revoke_key(file, "alice"));
  EXPECT_TRUE((*ring)->refresh());
  EXPECT_FALSE((*ring)->accepts(*alice));
  EXPECT_TRUE((*ring)->accepts(*bob));
}

TEST(Keys, ABrokenOrMissingFileLeavesThemAsTheyWere) {
  const TestFolder folder;
  const std::string file = folder.file("keys");
  const auto alice = add_key(file, "alice");
  const auto ring = KeyRing::load(file);
  ASSERT_TRUE(alice && ring);
  folder.write("keys", "nonsense\n");
  EXPECT_FALSE((*ring)->refresh());
  EXPECT_TRUE((*ring)->accepts(*alice));
  std::filesystem::remove(file);
  EXPECT_FALSE((*ring)->refresh());
  EXPECT_TRUE((*ring)->accepts(*alice));
}

TEST(Keys, AFaultNamesTheFileItsLineAndTheFlagButNotItsText) {
  const TestFolder folder;
  for (const std::string& text :
       {std::string("alice\n"), std::string("alice secret\n"), std::string("a/b ") + kHashOfAbc,
        std::string("alice ") + kHashOfAbc + " more", std::string("alice ") + kHashOfAbc + "0"}) {
    const auto ring = KeyRing::load(folder.write("keys", "# first line\n" + text));
    ASSERT_FALSE(ring) << text;
    EXPECT_THAT(ring.error().message, HasSubstr(folder.file("keys")));
    EXPECT_THAT(ring.error().message, HasSubstr("--api-keys"));
    EXPECT_THAT(ring.error().message, HasSubstr("line 2"));
    EXPECT_THAT(ring.error().message, Not(HasSubstr("secret")));
  }
  const auto missing = KeyRing::load(folder.file("none"));
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr(folder.file("none")));
}

TEST(KeyFile, HoldsNoKeyAndOnlyItsOwnerMayReadIt) {
  const TestFolder folder;
  const auto key = add_key(folder.file("keys"), "alice");
  ASSERT_TRUE(key);
  EXPECT_GE(key->size(), 64U);
  EXPECT_THAT(folder.read("keys"), Not(HasSubstr(*key)));
  const auto mode = std::filesystem::status(folder.file("keys")).permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(KeyFile, ChangesLeaveCommentsAndOtherKeysAlone) {
  const TestFolder folder;
  const std::string line = std::string("carol ") + kHashOfAbc;
  folder.write("keys", "# ours\n" + line);  // without a last line end
  ASSERT_TRUE(add_key(folder.file("keys"), "alice"));
  ASSERT_TRUE(revoke_key(folder.file("keys"), "alice"));
  EXPECT_EQ(folder.read("keys"), "# ours\n" + line + "\n");
}

TEST(KeyFile, ANameIsTakenOnceAndRevokedOnce) {
  const TestFolder folder;
  const std::string file = folder.file("keys");
  ASSERT_TRUE(add_key(file, "alice"));
  EXPECT_FALSE(add_key(file, "alice"));
  EXPECT_FALSE(add_key(file, "two words"));
  EXPECT_FALSE(add_key(file, "a\nb"));
  EXPECT_FALSE(add_key(file, "#comment"));
  ASSERT_TRUE(revoke_key(file, "alice"));
  EXPECT_EQ(revoke_key(file, "alice").error().code, Code::kNotFound);
  const auto left = list_keys(file);
  ASSERT_TRUE(left);
  EXPECT_TRUE(left->empty());
}

}  // namespace
}  // namespace sluice
