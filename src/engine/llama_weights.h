// load_weights: the model, its weights in the type of the file or in a faster one. ggml multiplies
// a batch with weights of some types in blocks of rows, several times as fast as row by row; which
// types depends on the processor. Weights of another type can be kept in a copy of the file that
// has one of these (llama_weights_cache.h). What stands in the way of a copy is a warning, and the
// file is used as it is. Bounded by kMostBytesOfAuto for what kAuto copies. Thread: any; it blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "engine/llama_engine.h"
#include "engine/llama_model.h"
#include "engine/llama_weights_cache.h"

namespace sluice {

// What is known of a model file without loading it.
struct WeightsFile {
  std::int32_t type = 0;    // ggml_type that holds most of the bytes
  std::uint64_t bytes = 0;  // of all tensors
  bool whole = true;        // not one part of several files
  bool experts = false;     // a mixture of experts
};

// Nothing: it can't be read; LlamaModel::load says why.
[[nodiscard]] std::optional<WeightsFile> read_weights(const std::string& path);

// What this build of ggml, on this processor, multiplies in blocks of rows.
struct MatrixKernels {
  bool q8_0 = false;
  bool q5_0 = false;
  bool q4_1 = false;
};
[[nodiscard]] MatrixKernels matrix_kernels();

// A copy of a file larger than this is made only for whoever asks for it by name: it takes minutes
// and nearly twice the file's room.
inline constexpr std::uint64_t kMostBytesOfAuto = std::uint64_t{4} << 30;

// The type of the copy to use; nothing: the file as it is.
[[nodiscard]] std::optional<CopyType> choose_copy(Weights choice, const WeightsFile& file,
                                                  const MatrixKernels& kernels);

// Errors: LlamaModel::load's, for the file itself.
[[nodiscard]] Result<std::unique_ptr<LlamaModel>> load_weights(const LlamaOptions& options);

}  // namespace sluice
