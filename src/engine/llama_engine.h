// The real engine: libllama behind Engine.
// Bounded by LlamaOptions: slots, the context of each, rows in a step. Without free KV a step
// answers kNoKvSpace and nothing changed. Thread: as Engine says for each function.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "engine/engine.h"

namespace sluice {

enum class KvType { kF16, kQ8_0 };

// In which type the weights are kept: the file's own; or another, in a copy of the file; or kAuto:
// another where the file's own is slow on this processor and the copy as good (llama_weights.h).
enum class Weights { kFile, kAuto, kQ8_0, kQ4_0 };

// The defaults are the fastest that were measured (docs/decisions).
struct LlamaOptions {
  std::string model_path;
  std::uint32_t context_tokens = 2048;  // of one sequence; no more than the model was trained for
  std::uint32_t slots = 32;             // at most 255
  std::uint32_t threads = 0;            // 0: as many as the machine has
  std::uint32_t max_step_tokens = 512;  // rows in one step
  KvType kv_type = KvType::kQ8_0;
  bool flash_attention = true;  // kQ8_0 needs it
  Weights weights = Weights::kAuto;
  std::string weights_folder;  // where the copies are kept; empty: nowhere, so there are none
  // One KV buffer for all slots together, of `context_tokens`: less memory, slower for many
  // sequences without a common prefix.
  bool unified_kv = false;
};

// Errors name the file or the option at fault: kNotFound, kInvalidArgument, kResourceExhausted
// (memory).
[[nodiscard]] Result<std::unique_ptr<Engine>> make_llama_engine(const LlamaOptions& options);

}  // namespace sluice
