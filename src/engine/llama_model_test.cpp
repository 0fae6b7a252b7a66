#include "engine/llama_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "engine/test_model.h"

namespace sluice {
namespace {

using testing::HasSubstr;

// A file that goes when the test ends.
class TempFile {
 public:
  explicit TempFile(const std::string& bytes)
      : path_(std::filesystem::temp_directory_path() /
              ("sluice-" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
               ".gguf")) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  const std::filesystem::path path_;
};

// The error that names the file; it must be one line.
Error refusal(const std::string& path) {
  Result<std::unique_ptr<LlamaModel>> model = LlamaModel::load(path);
  if (model) {
    ADD_FAILURE() << path << " was taken";
    return {};
  }
  EXPECT_THAT(model.error().message, HasSubstr(path));
  EXPECT_EQ(model.error().message.find('\n'), std::string::npos);
  return model.error();
}

std::string first_bytes_of_model(double share) {
  const std::string path = test_model_path();
  std::string bytes(
      static_cast<std::size_t>(static_cast<double>(std::filesystem::file_size(path)) * share),
      '\0');
  std::ifstream(path, std::ios::binary)
      .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

TEST(LlamaModel, RefusesAFileThatIsNotThere) {
  const Error error = refusal("/nonexistent/model.gguf");
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("no such file"));
}

TEST(LlamaModel, RefusesADirectory) {
  EXPECT_THAT(refusal(std::filesystem::temp_directory_path().string()).message,
              HasSubstr("not a regular file"));
}

TEST(LlamaModel, RefusesWhatIsNotGguf) {
  for (const char* bytes :
       {"", "G", "GGUF", "not a model at all, but long enough to hold a header of one"}) {
    const TempFile file(bytes);
    EXPECT_EQ(refusal(file.path()).code, Code::kInvalidArgument) << bytes;
  }
}

TEST(LlamaModel, RefusesAFileCutInItsMetadata) {
  if (test_model_path().empty()) GTEST_SKIP() << "SLUICE_MODEL is not set";
  const TempFile file(first_bytes_of_model(0.001));
  EXPECT_EQ(refusal(file.path()).code, Code::kInvalidArgument);
}

TEST(LlamaModel, RefusesAFileCutInItsWeights) {
  if (test_model_path().empty()) GTEST_SKIP() << "SLUICE_MODEL is not set";
  for (const double share : {0.5, 0.999}) {
    const TempFile file(first_bytes_of_model(share));
    EXPECT_THAT(refusal(file.path()).message, HasSubstr("not within the file bounds")) << share;
  }
}

class LoadedModel : public testing::Test {
 protected:
  void SetUp() override {
    if (test_model_path().empty()) GTEST_SKIP() << "SLUICE_MODEL is not set";
    Result<std::unique_ptr<LlamaModel>> model = LlamaModel::load(test_model_path());
    ASSERT_TRUE(model) << model.error().message;
    model_ = std::move(*model);
  }

  std::unique_ptr<LlamaModel> model_;
};

TEST_F(LoadedModel, HasANameOfPlainCharacters) {
  EXPECT_FALSE(model_->name().empty());
  EXPECT_TRUE(std::all_of(model_->name().begin(), model_->name().end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  })) << model_->name();
}

TEST_F(LoadedModel, KnowsTheBytesOfEachTokenAndWhichEndAnAnswer) {
  std::size_t longest = 0;
  for (std::uint32_t token = 0; token < model_->vocabulary(); ++token) {
    longest = std::max(longest, model_->piece(static_cast<Token>(token)).size());
  }
  EXPECT_EQ(longest, model_->longest_piece());
  ASSERT_FALSE(model_->end_tokens().empty());
  for (const Token token : model_->end_tokens()) {
    EXPECT_TRUE(model_->ends_generation(token));
    EXPECT_EQ(model_->piece(token), "");
  }
}

}  // namespace
}  // namespace sluice
