#include "engine/llama_weights.h"

#include <ggml.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/test_model.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr MatrixKernels kAvx{.q8_0 = true, .q5_0 = true, .q4_1 = false};
constexpr MatrixKernels kArmWithInt8{.q8_0 = true, .q5_0 = false, .q4_1 = true};
constexpr MatrixKernels kNone{};

WeightsFile file_of(ggml_type type, std::uint64_t bytes = 100 << 20) {
  return {.type = type, .bytes = bytes};
}

TEST(ChooseCopy, AutoReplacesTypesWithoutAMatrixKernel) {
  EXPECT_EQ(choose_copy(Weights::kAuto, file_of(GGML_TYPE_Q4_1), kAvx), CopyType::kQ8_0);
  EXPECT_EQ(choose_copy(Weights::kAuto, file_of(GGML_TYPE_Q5_1), kAvx), CopyType::kQ8_0);
  EXPECT_EQ(choose_copy(Weights::kAuto, file_of(GGML_TYPE_Q5_0), kArmWithInt8), CopyType::kQ8_0);
}

TEST(ChooseCopy, AutoLeavesTypesThatHaveOne) {
  EXPECT_EQ(choose_copy(Weights::kAuto, file_of(GGML_TYPE_Q5_0), kAvx), std::nullopt);
  EXPECT_EQ(choose_copy(Weights::kAuto, file_of(GGML_TYPE_Q4_1), kArmWithInt8), std::nullopt);
  for (const ggml_type type : {GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_F16, GGML_TYPE_Q4_K})
    EXPECT_EQ(choose_copy(Weights::kAuto, file_of(type), kAvx), std::nullopt) << type;
}

TEST(ChooseCopy, AutoLeavesEveryFileWhereQ8HasNoKernelEither) {
  EXPECT_EQ(choose_copy(Weights::kAuto, file_of(GGML_TYPE_Q4_1), kNone), std::nullopt);
}

TEST(ChooseCopy, AutoLeavesLargeFilesAndMixturesOfExperts) {
  EXPECT_EQ(choose_copy(Weights::kAuto, file_of(GGML_TYPE_Q4_1, kMostBytesOfAuto), kAvx),
            CopyType::kQ8_0);
  EXPECT_EQ(choose_copy(Weights::kAuto, file_of(GGML_TYPE_Q4_1, kMostBytesOfAuto + 1), kAvx),
            std::nullopt);
  WeightsFile experts = file_of(GGML_TYPE_Q4_1);
  experts.experts = true;
  EXPECT_EQ(choose_copy(Weights::kAuto, experts, kAvx), std::nullopt);
}

TEST(ChooseCopy, ATypeThatIsAskedForIsTaken) {
  const WeightsFile large = file_of(GGML_TYPE_F16, 2 * kMostBytesOfAuto);
  EXPECT_EQ(choose_copy(Weights::kQ8_0, large, kNone), CopyType::kQ8_0);
  EXPECT_EQ(choose_copy(Weights::kQ4_0, large, kNone), CopyType::kQ4_0);
}

TEST(ChooseCopy, AFileThatHasTheTypeNeedsNoCopy) {
  EXPECT_EQ(choose_copy(Weights::kQ8_0, file_of(GGML_TYPE_Q8_0), kAvx), std::nullopt);
  EXPECT_EQ(choose_copy(Weights::kQ4_0, file_of(GGML_TYPE_Q4_0), kAvx), std::nullopt);
  EXPECT_EQ(choose_copy(Weights::kFile, file_of(GGML_TYPE_Q4_1), kAvx), std::nullopt);
}

TEST(ChooseCopy, APartOfAModelIsLeftAsItIs) {
  WeightsFile part = file_of(GGML_TYPE_Q4_1);
  part.whole = false;
  EXPECT_EQ(choose_copy(Weights::kQ8_0, part, kAvx), std::nullopt);
}

TEST(ReadWeights, KnowsNothingOfWhatIsNoModel) {
  EXPECT_FALSE(read_weights("/nonexistent/model.gguf"));
}

// With the default model, which is mostly Q4_1, and one folder of copies for all of them.
class LoadWeights : public testing::Test {
 protected:
  void SetUp() override {
    if (test_model_path().empty()) GTEST_SKIP() << "SLUICE_MODEL is not set";
    options_.model_path = test_model_path();
    options_.weights_folder = folder();
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder()); }

  static std::string folder() {
    static const std::string folder =
        std::filesystem::temp_directory_path() / ("sluice-weights-" + std::to_string(::getpid()));
    return folder;
  }

  [[nodiscard]] std::string served_type() const {
    const Result<std::unique_ptr<LlamaModel>> model = load_weights(options_);
    EXPECT_TRUE(model) << model.error().message;
    return model ? (*model)->weights() : "";
  }
  [[nodiscard]] static std::vector<std::filesystem::path> copies() {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder()))
      if (entry.path().extension() == ".gguf") paths.push_back(entry.path());
    return paths;
  }

  LlamaOptions options_;
};

TEST_F(LoadWeights, AutoServesTheDefaultModelInTheTypeThatIsFastHere) {
  const std::optional<WeightsFile> file = read_weights(test_model_path());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->type, GGML_TYPE_Q4_1);
  const MatrixKernels kernels = matrix_kernels();
  EXPECT_EQ(served_type(), kernels.q8_0 && !kernels.q4_1 ? "Q8_0" : "Q4_1");
}

TEST_F(LoadWeights, FileServesWhatTheFileHas) {
  options_.weights = Weights::kFile;
  EXPECT_EQ(served_type(), "Q4_1");
}

TEST_F(LoadWeights, TheModelKeepsItsName) {
  options_.weights = Weights::kQ8_0;
  const auto copy = load_weights(options_);
  const auto file = LlamaModel::load(test_model_path());
  ASSERT_TRUE(copy && file);
  EXPECT_EQ((*copy)->name(), (*file)->name());
  EXPECT_EQ((*copy)->vocabulary(), (*file)->vocabulary());
}

TEST_F(LoadWeights, ABrokenCopyIsMadeAgain) {
  options_.weights = Weights::kQ8_0;
  ASSERT_EQ(served_type(), "Q8_0");
  ASSERT_EQ(copies().size(), 1U);
  const std::uintmax_t size = std::filesystem::file_size(copies().front());
  std::filesystem::resize_file(copies().front(), size / 2);
  EXPECT_EQ(served_type(), "Q8_0");
  EXPECT_EQ(std::filesystem::file_size(copies().front()), size);
}

TEST_F(LoadWeights, WithoutAFolderTheFileIsServed) {
  options_.weights = Weights::kQ8_0;
  options_.weights_folder.clear();
  EXPECT_EQ(served_type(), "Q4_1");
}

TEST_F(LoadWeights, WhereTheFolderCannotBeMadeTheFileIsServed) {
  options_.weights = Weights::kQ8_0;
  options_.weights_folder = "/dev/null/weights";
  EXPECT_EQ(served_type(), "Q4_1");
}

TEST_F(LoadWeights, ATruncatedFileIsRefusedAsEver) {
  const std::string truncated = folder() + ".gguf";
  std::filesystem::copy_file(test_model_path(), truncated);
  std::filesystem::resize_file(truncated, std::filesystem::file_size(truncated) / 2);
  options_.model_path = truncated;
  const auto model = load_weights(options_);
  std::filesystem::remove(truncated);
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr(truncated));
}

TEST_F(LoadWeights, AFileThatIsNoModelIsRefusedAsEver) {
  options_.model_path = "/nonexistent/model.gguf";
  const auto model = load_weights(options_);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, Code::kNotFound);
  EXPECT_THAT(model.error().message, HasSubstr(options_.model_path));
}

}  // namespace
}  // namespace sluice
