#include "engine/llama_weights_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <vector>

#include "engine/test_model.h"

namespace sluice {
namespace {

using std::chrono_literals::operator""s;
using testing::EndsWith;
using testing::HasSubstr;

namespace fs = std::filesystem;

// A copy of the model that a test may change, and a folder for its copies.
class WeightsCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    if (test_model_path().empty()) GTEST_SKIP() << "SLUICE_MODEL is not set";
    std::string name = (fs::temp_directory_path() / "sluice-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    model_ = (folder_ / "model.gguf").string();
    fs::copy_file(test_model_path(), model_);
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  [[nodiscard]] std::string find_or_make() const {
    const Result<std::string> copy = cache().find_or_make(model_, CopyType::kQ8_0);
    EXPECT_TRUE(copy) << copy.error().message;
    return copy ? *copy : "";
  }
  [[nodiscard]] WeightsCache cache() const { return {copies_folder(), 0}; }
  [[nodiscard]] fs::path copies_folder() const { return folder_ / "weights"; }
  [[nodiscard]] std::size_t copies() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(copies_folder()))
      count += entry.path().extension() == ".gguf" ? 1 : 0;
    return count;
  }
  // A copy's inode, so that one made anew has another while the test holds the old one open.
  static ino_t inode(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_ino;
  }

  fs::path folder_;
  std::string model_;
};

TEST_F(WeightsCacheTest, ACopyIsMadeOnceAndFoundAgain) {
  const std::string first = find_or_make();
  EXPECT_THAT(first, EndsWith(".gguf"));
  EXPECT_THAT(first, HasSubstr("model-q8_0-"));
  const std::ifstream held(first);
  const ino_t made = inode(first);
  EXPECT_EQ(find_or_make(), first);
  EXPECT_EQ(inode(first), made);
  EXPECT_FALSE(fs::exists(copies_folder() / ".fresh"));
}

TEST_F(WeightsCacheTest, AFileThatChangedGetsAnotherCopy) {
  const std::string first = find_or_make();
  fs::last_write_time(model_, fs::last_write_time(model_) + 1s);
  EXPECT_NE(find_or_make(), first);
}

TEST_F(WeightsCacheTest, AFileIsTheSameWhereverItLies) {
  const std::string first = find_or_make();
  const fs::path moved = folder_ / "moved" / "model.gguf";
  fs::create_directory(moved.parent_path());
  fs::rename(model_, moved);
  model_ = moved.string();
  EXPECT_EQ(find_or_make(), first);
}

TEST_F(WeightsCacheTest, TwoProcessesMakeOneCopy) {
  const std::string log_file = (folder_ / "log").string();
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      if (::freopen(log_file.c_str(), "a", stderr) == nullptr) ::_exit(1);
      ::_exit(cache().find_or_make(model_, CopyType::kQ8_0) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(copies(), 1U);
  std::size_t made = 0;
  std::ifstream log(log_file);
  for (std::string line; std::getline(log, line);)
    made += line.find("making a copy of ") != std::string::npos ? 1 : 0;
  EXPECT_EQ(made, 1U);
}

TEST_F(WeightsCacheTest, TheCopyUnusedForLongestGivesWay) {
  fs::create_directories(copies_folder());
  const auto now = fs::file_time_type::clock::now();
  for (std::size_t i = 0; i < WeightsCache::kMostCopies; ++i) {
    const fs::path other = copies_folder() / ("other-" + std::to_string(i) + ".gguf");
    std::ofstream(other) << "weights";
    fs::last_write_time(other, now - std::chrono::hours(i == 3 ? 100 : 1));
  }
  EXPECT_TRUE(fs::exists(find_or_make()));
  EXPECT_EQ(copies(), WeightsCache::kMostCopies);
  EXPECT_FALSE(fs::exists(copies_folder() / "other-3.gguf"));
}

TEST_F(WeightsCacheTest, WhatIsNoModelLeavesNothingBehind) {
  std::ofstream(model_) << "not a model";
  const Result<std::string> copy = cache().find_or_make(model_, CopyType::kQ8_0);
  ASSERT_FALSE(copy);
  EXPECT_EQ(copies(), 0U);
  EXPECT_FALSE(fs::exists(copies_folder() / ".fresh"));
}

}  // namespace
}  // namespace sluice
