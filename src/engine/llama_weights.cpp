#include "engine/llama_weights.h"

#include <ggml-backend.h>
#include <gguf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "base/concat.h"
#include "base/log.h"
#include "engine/llama_log.h"

namespace sluice {
namespace {

constexpr std::string_view kComponent = "weights";

struct FreeGguf {
  void operator()(gguf_context* context) const noexcept { gguf_free(context); }
};

// As ggml's processor backend tells them: "AVX2", "LLAMAFILE", …
class CpuFeatures {
 public:
  CpuFeatures() {
    ggml_backend_dev_t const device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (device == nullptr) return;
    ggml_backend_reg_t const backend = ggml_backend_dev_backend_reg(device);
    const auto get = reinterpret_cast<ggml_backend_get_features_t>(
        ggml_backend_reg_get_proc_address(backend, "ggml_backend_get_features"));
    if (get != nullptr) first_ = get(backend);
  }

  [[nodiscard]] bool has(const char* name) const noexcept {
    for (const ggml_backend_feature* f = first_; f != nullptr && f->name != nullptr; ++f) {
      if (std::strcmp(f->name, name) == 0) return true;
    }
    return false;
  }

 private:
  const ggml_backend_feature* first_ = nullptr;
};

// Nothing where there is no copy, or none that can be used.
std::unique_ptr<LlamaModel> load_copy(const LlamaOptions& options, CopyType type) {
  const WeightsCache cache(options.weights_folder, options.threads);
  // A copy that was found broken is made again, once.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Result<std::string> copy = cache.find_or_make(options.model_path, type);
    if (!copy) {
      log_warning(kComponent, concat("model file ", options.model_path, ": used as it is, without ",
                                     "a copy in ", name_of(type), ": ", copy.error().message));
      return nullptr;
    }
    Result<std::unique_ptr<LlamaModel>> model = LlamaModel::load(*copy, options.model_path);
    if (model) {
      log_info(kComponent, concat("in ", name_of(type), ", from ", *copy));
      return std::move(*model);
    }
    log_warning(kComponent, concat("a copy can't be used and goes: ", model.error().message));
    cache.drop(*copy);
  }
  return nullptr;
}

}  // namespace

std::optional<WeightsFile> read_weights(const std::string& path) {
  route_llama_log();
  const std::unique_ptr<gguf_context, FreeGguf> file(
      gguf_init_from_file(path.c_str(), {true, nullptr}));
  if (file == nullptr) return std::nullopt;
  WeightsFile weights;
  std::map<ggml_type, std::uint64_t> bytes;
  for (std::int64_t i = 0; i < gguf_get_n_tensors(file.get()); ++i) {
    const std::uint64_t size = gguf_get_tensor_size(file.get(), i);
    bytes[gguf_get_tensor_type(file.get(), i)] += size;
    weights.bytes += size;
    weights.experts = weights.experts || gguf_get_tensor_ne(file.get(), i)[2] > 1;
  }
  if (bytes.empty()) return std::nullopt;
  weights.type = std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) {
                   return a.second < b.second;
                 })->first;
  weights.whole = gguf_find_key(file.get(), "split.count") < 0;
  return weights;
}

// llama.cpp 0.3.36: llamafile/sgemm.cpp; repack.cpp, ggml_repack_get_optimal_repack_type; and the
// two rows at a time of ggml-cpu.c's type_traits_cpu. Q5_1 has a kernel nowhere.
MatrixKernels matrix_kernels() {
  const CpuFeatures cpu;
  const bool avx = cpu.has("AVX");
  const bool blocks = cpu.has("LLAMAFILE") && (avx || cpu.has("DOTPROD"));
  const bool repacked = cpu.has("REPACK") && cpu.has("NEON") && cpu.has("DOTPROD");
  return {.q8_0 = blocks || repacked,
          .q5_0 = cpu.has("LLAMAFILE") && avx,
          .q4_1 = cpu.has("MATMUL_INT8")};
}

std::optional<CopyType> choose_copy(Weights choice, const WeightsFile& file,
                                    const MatrixKernels& kernels) {
  if (choice == Weights::kFile || !file.whole) return std::nullopt;
  if (choice == Weights::kQ8_0 && file.type != GGML_TYPE_Q8_0) return CopyType::kQ8_0;
  if (choice == Weights::kQ4_0 && file.type != GGML_TYPE_Q4_0) return CopyType::kQ4_0;
  if (choice != Weights::kAuto || !kernels.q8_0 || file.bytes > kMostBytesOfAuto)
    return std::nullopt;
  // Those are multiplied by another operation (mul_mat_id), which has other kernels.
  if (file.experts) return std::nullopt;
  // Types whose values q8_0 holds within a few percent of their own step.
  const bool slow = (file.type == GGML_TYPE_Q4_1 && !kernels.q4_1) ||
                    (file.type == GGML_TYPE_Q5_0 && !kernels.q5_0) || file.type == GGML_TYPE_Q5_1;
  return slow ? std::optional(CopyType::kQ8_0) : std::nullopt;
}

Result<std::unique_ptr<LlamaModel>> load_weights(const LlamaOptions& options) {
  const bool copies = options.weights != Weights::kFile && !options.weights_folder.empty();
  if (const auto file = copies ? read_weights(options.model_path) : std::nullopt) {
    if (const auto type = choose_copy(options.weights, *file, matrix_kernels())) {
      if (auto model = load_copy(options, *type)) return model;
    }
  }
  return LlamaModel::load(options.model_path);
}

}  // namespace sluice
