#include "access/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "access/hex.h"
#include "access/key_file.h"
#include "testing/folder.h"

namespace sluice {
namespace {

bool accepts(const KeyRing& ring, std::string_view bearer) { return ring.find(bearer) != nullptr; }

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
  EXPECT_TRUE(accepts(**ring, "abc"));
  for (const char* wrong : {"", "ab", "abcd", "ABC", kHashOfAbc})
    EXPECT_FALSE(accepts(**ring, wrong)) << wrong;
}

TEST(Keys, FindTellsWhoseItIsAndWhatThatCallerMay) {
  const TestFolder folder;
  const auto ring = KeyRing::load(folder.write("keys", std::string("alice ") + kHashOfAbc +
                                                           " rpm=60 models=a,b\nbob " +
                                                           to_hex(sha256("bob's")) + " trusted\n"));
  ASSERT_TRUE(ring) << ring.error().message;
  const auto alice = (*ring)->find("abc");
  ASSERT_TRUE(alice);
  EXPECT_EQ(alice->name, "alice");
  EXPECT_EQ(alice->limits.requests_per_minute, 60U);
  EXPECT_FALSE(alice->limits.trusted);
  const auto bob = (*ring)->find("bob's");
  ASSERT_TRUE(bob);
  EXPECT_EQ(bob->name, "bob");
  EXPECT_TRUE(bob->limits.trusted);
  EXPECT_EQ((*ring)->find("carol's"), nullptr);
  const auto self = (*ring)->find((*ring)->own_key());
  ASSERT_TRUE(self);
  EXPECT_TRUE(self->limits.trusted);
}

TEST(Keys, ACallerOutlivesItsKeysRevocation) {
  const TestFolder folder;
  const std::string file = folder.write("keys", std::string("alice ") + kHashOfAbc + "\n");
  auto ring = KeyRing::load(file);
  ASSERT_TRUE(ring);
  const auto alice = (*ring)->find("abc");
  ASSERT_TRUE(revoke_key(file, "alice"));
  ASSERT_TRUE((*ring)->refresh());
  ring->reset();
  EXPECT_EQ(alice->name, "alice");
}

TEST(Keys, TheBearerFollowsItsSchemeInAnyCase) {
  EXPECT_EQ(bearer_in("Bearer abc"), "abc");
  EXPECT_EQ(bearer_in("bEARER abc"), "abc");
  for (const char* none : {"", "abc", "Bearer", "Bearer ", "Basic abc", "Bearerabc"})
    EXPECT_EQ(bearer_in(none), "") << none;
}

TEST(Keys, NobodyNeedsOneWithoutAFile) {
  const KeyRing ring;
  EXPECT_FALSE(ring.required());
  EXPECT_TRUE(accepts(ring, ""));
  EXPECT_EQ(ring.find("")->name, "");
  EXPECT_FALSE(ring.find("")->limits.trusted);
}

TEST(Keys, AnEmptyFileLetsNobodyInButTheProcessItself) {
  const TestFolder folder;
  const auto ring = KeyRing::load(folder.write("keys", "# nobody yet\n\n"));
  ASSERT_TRUE(ring) << ring.error().message;
  EXPECT_FALSE(accepts(**ring, ""));
  EXPECT_TRUE(accepts(**ring, (*ring)->own_key()));
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
  EXPECT_FALSE(accepts(**ring, *bob));
  EXPECT_TRUE((*ring)->refresh());
  EXPECT_TRUE(accepts(**ring, *bob));
  EXPECT_TRUE(accepts(**ring, *alice));

  ASSERT_TRUE(revoke_key(file, "alice"));
  EXPECT_TRUE((*ring)->refresh());
  EXPECT_FALSE(accepts(**ring, *alice));
  EXPECT_TRUE(accepts(**ring, *bob));
}

TEST(Keys, ThoseWithLimitsThatOnlyAGatewayHoldsAreCounted) {
  const TestFolder folder;
  const std::string path = folder.file("keys");
  const KeyLimits limits[] = {{},
                              {.requests_per_minute = 1},
                              {.tokens_per_minute = 1},
                              {.streams = 1},
                              {.models = {"m"}, .trusted = true}};
  for (const KeyLimits& one : limits)
    ASSERT_TRUE(add_key(path, "key" + std::to_string(&one - limits), one));
  const auto ring = KeyRing::load(path);
  ASSERT_TRUE(ring);
  EXPECT_EQ((*ring)->metered(), 3U);
}

TEST(Keys, ABrokenOrMissingFileLeavesThemAsTheyWere) {
  const TestFolder folder;
  const std::string file = folder.file("keys");
  const auto alice = add_key(file, "alice");
  const auto ring = KeyRing::load(file);
  ASSERT_TRUE(alice && ring);
  folder.write("keys", "nonsense\n");
  EXPECT_FALSE((*ring)->refresh());
  EXPECT_TRUE(accepts(**ring, *alice));
  std::filesystem::remove(file);
  EXPECT_FALSE((*ring)->refresh());
  EXPECT_TRUE(accepts(**ring, *alice));
}

TEST(Keys, AFaultNamesTheFileItsLineAndTheFlagButNotItsText) {
  const TestFolder folder;
  for (const std::string& text :
       {std::string("alice\n"), std::string("alice secret\n"), std::string("a/b ") + kHashOfAbc,
        std::string("alice ") + kHashOfAbc + " secret", std::string("alice ") + kHashOfAbc + "0"}) {
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

TEST(KeyFile, LimitsAreKeptThroughLaterChanges) {
  const TestFolder folder;
  const std::string file = folder.file("keys");
  const KeyLimits limits{.requests_per_minute = 60,
                         .tokens_per_minute = 100'000,
                         .streams = 8,
                         .models = {"a", "b"},
                         .trusted = true};
  ASSERT_TRUE(add_key(file, "alice", limits));
  ASSERT_TRUE(add_key(file, "bob"));
  ASSERT_TRUE(revoke_key(file, "bob"));
  const auto left = list_keys(file);
  ASSERT_TRUE(left);
  ASSERT_EQ(left->size(), 1U);
  EXPECT_EQ(left->front().limits, limits);
}

TEST(KeyFile, LimitsThatWouldReadDifferentlyAreRefused) {
  const TestFolder folder;
  for (const KeyLimits& limits :
       {KeyLimits{.models = {"a b"}}, KeyLimits{.models = {"a,b"}}, KeyLimits{.models = {""}},
        KeyLimits{.models = {"a trusted"}}, KeyLimits{.streams = kMaxPerMinute + 1}}) {
    EXPECT_FALSE(add_key(folder.file("keys"), "alice", limits));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("keys")));
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

TEST(Keys, AFileWithoutAnEndAndWhatIsNoFileAreRefused) {
  for (const char* path : {"/", "/proc/self/mem", "/dev/zero"}) {
    const auto ring = KeyRing::load(path);
    ASSERT_FALSE(ring);
    EXPECT_THAT(ring.error().message, HasSubstr(path));
    EXPECT_THAT(ring.error().message, HasSubstr("--api-keys"));
    EXPECT_FALSE(list_keys(path));
  }
}

TEST(Keys, OnlyAFileIsReplacedByAFile) {
  const TestFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(add_key(pipe, "alice"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_FALSE(add_key(folder.file("."), "alice"));
}

}  // namespace
}  // namespace sluice
