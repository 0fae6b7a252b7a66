#include "engine/llama_context.h"

#include <ggml-cpu.h>
#include <llama.h>

#include <exception>

#include "base/concat.h"
#include "engine/llama_log.h"

namespace sluice {

Result<std::unique_ptr<LlamaContext>> LlamaContext::make(const LlamaModel& model,
                                                         const llama_context_params& params) {
  const LlamaErrors errors;
  const auto no_context = [&](const char* what) {
    return fail(Code::kResourceExhausted,
                concat("no room for the model's KV cache and buffers (", what,
                       "): lower --max-sequences or --context-tokens"));
  };
  try {
    llama_context* const context = llama_init_from_model(model.handle(), params);
    if (context == nullptr) return no_context(errors.text().c_str());
    // Its own threads would be started anew for each forward pass.
    ggml_threadpool_params pool = ggml_threadpool_params_default(params.n_threads);
    pool.poll = 0;  // between passes they sleep: sampling and the wires want the processor then
    ggml_threadpool* const threads = ggml_threadpool_new(&pool);
    llama_attach_threadpool(context, threads, threads);
    return std::unique_ptr<LlamaContext>(new LlamaContext(context, threads));
  } catch (const std::exception& exception) {
    return no_context(exception.what());
  }
}

LlamaContext::LlamaContext(llama_context* context, ggml_threadpool* threads) noexcept
    : context_(context), threads_(threads) {
  const auto should_abort = [](void* self) noexcept {
    const AbortCheck* const abort = static_cast<LlamaContext*>(self)->abort_;
    return abort != nullptr && *abort && (*abort)();
  };
  llama_set_abort_callback(context_, should_abort, this);
}

LlamaContext::~LlamaContext() {
  llama_free(context_);
  ggml_threadpool_free(threads_);
}

StepStatus LlamaContext::decode(const llama_batch& batch, const AbortCheck& abort,
                                std::string& message) {
  constexpr int kDone = 0;
  constexpr int kNoSlot = 1;
  constexpr int kAborted = 2;
  const LlamaErrors errors;
  message.clear();
  abort_ = &abort;
  int result = -1;
  try {
    result = llama_decode(context_, batch);
  } catch (const std::exception& exception) {
    message = exception.what();
  }
  abort_ = nullptr;
  switch (result) {
    case kDone:
      return StepStatus::kDone;
    case kNoSlot:
      return StepStatus::kNoKvSpace;
    case kAborted:
      return StepStatus::kAborted;
    default:
      break;
  }
  if (message.empty()) message = errors.text();
  return StepStatus::kFailed;
}

}  // namespace sluice
