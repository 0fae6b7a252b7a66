// LlamaContext: the owned libllama objects that a forward pass needs: a context with its KV, its
// threads, and the abort callback. Bounded by what it was made for (llama_context_params). Thread:
// one at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/llama_model.h"

struct ggml_threadpool;
struct llama_batch;
struct llama_context;
struct llama_context_params;

namespace sluice {

class LlamaContext {
 public:
  // `model` outlives it.
  [[nodiscard]] static Result<std::unique_ptr<LlamaContext>> make(
      const LlamaModel& model, const llama_context_params& params);
  ~LlamaContext();
  LlamaContext(const LlamaContext&) = delete;
  LlamaContext& operator=(const LlamaContext&) = delete;

  [[nodiscard]] llama_context* handle() const noexcept { return context_; }

  // llama_decode; `abort` is asked during it. The message of kFailed is left in `message`.
  [[nodiscard]] StepStatus decode(const llama_batch& batch, const AbortCheck& abort,
                                  std::string& message);

 private:
  LlamaContext(llama_context* context, ggml_threadpool* threads) noexcept;

  llama_context* const context_;
  ggml_threadpool* const threads_;
  const AbortCheck* abort_ = nullptr;  // of the decode under way
};

}  // namespace sluice
