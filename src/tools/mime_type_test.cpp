#include "tools/mime_type.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(MimeType, KnownExtensionsSayItInAnyCase) {
  EXPECT_EQ(mime_type_of("a/b.png", "text"), "image/png");
  EXPECT_EQ(mime_type_of("PHOTO.JPG", ""), "image/jpeg");
  EXPECT_EQ(mime_type_of("x.tar.mp3", ""), "audio/mpeg");
}

TEST(MimeType, OtherwiseTextIsWhatIsUtf8WithoutNul) {
  EXPECT_EQ(mime_type_of("notes.md", "# caf\xC3\xA9"), "text/plain");
  EXPECT_EQ(mime_type_of("png", ""), "text/plain");
  EXPECT_EQ(mime_type_of("data.txt", std::string("a\0b", 3)), "application/octet-stream");
  EXPECT_EQ(mime_type_of("data", "\xFF\xFE"), "application/octet-stream");
}

}  // namespace
}  // namespace sluice
