#include "base/read_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <thread>

#include "testing/folder.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void expect_refused(const std::string& path, Code code, const char* why) {
  const auto read = read_file(path, "--flag", 1000);
  ASSERT_FALSE(read) << path;
  EXPECT_EQ(read.error().code, code);
  EXPECT_THAT(read.error().message,
              AllOf(HasSubstr(path), HasSubstr("--flag"), HasSubstr(why), Not(HasSubstr("\n"))));
}

TEST(ReadFile, GivesEveryByteUpToTheBound) {
  const TestFolder folder;
  const std::string large(200'000, 'x');
  for (const std::string& text : {std::string(), std::string("a\0\n\xFF", 4), large}) {
    EXPECT_EQ(read_file(folder.write("file", text), "--flag", large.size()).value(), text);
  }
}

TEST(ReadFile, WhatCantBeReadIsNamedWithItsFlagAndWhy) {
  const TestFolder folder;
  expect_refused(folder.file("none"), Code::kNotFound, "No such file");
  expect_refused(folder.file("."), Code::kNotFound, "Is a directory");
  expect_refused(folder.file(""), Code::kNotFound, "Is a directory");
  expect_refused("", Code::kNotFound, "No such file");
  expect_refused("/proc/self/mem", Code::kNotFound, "error");
}

TEST(ReadFile, NeitherALargeFileNorOneWithoutAnEndIsReadBeyondTheBound) {
  const TestFolder folder;
  expect_refused(folder.write("large", std::string(1001, 'x')), Code::kInvalidArgument, "1000");
  expect_refused("/dev/zero", Code::kInvalidArgument, "1000");
}

TEST(ReadFile, APipeIsReadToItsEnd) {
  const TestFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << std::string(150'000, 'x'); });
  const auto read = read_file(pipe, "--flag", 150'000);
  writer.join();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->size(), 150'000U);
}

}  // namespace
}  // namespace sluice
