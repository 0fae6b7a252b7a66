#include "engine/llama_embedder.h"

#include <llama.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/concat.h"

namespace sluice {
namespace {

// Rows of one forward pass: also how long it takes to notice an abort at the worst.
constexpr std::size_t kChunk = 256;

Result<std::vector<float>> unit_vector(const std::vector<double>& sum) {
  double square = 0;
  for (const double value : sum) square += value * value;
  if (!(square > 0) || !std::isfinite(square))
    return fail(Code::kInternal, "the model gave no finite embedding");
  std::vector<float> vector;
  vector.reserve(sum.size());
  for (const double value : sum) vector.push_back(static_cast<float>(value / std::sqrt(square)));
  return vector;
}

}  // namespace

Result<void> LlamaEmbedder::start() {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = context_tokens_;
  params.n_batch = kChunk;
  params.n_ubatch = kChunk;
  params.n_seq_max = 1;
  params.n_threads = 1;  // generation has the machine; a text waits a little longer
  params.n_threads_batch = 1;
  params.embeddings = true;
  params.pooling_type = LLAMA_POOLING_TYPE_NONE;  // the mean is taken here, over all chunks
  params.no_perf = true;
  Result<std::unique_ptr<LlamaContext>> context = LlamaContext::make(model_, params);
  if (!context) return tl::unexpected(std::move(context.error()));
  context_ = std::move(*context);
  return {};
}

Result<std::vector<float>> LlamaEmbedder::embed(const std::vector<Token>& tokens,
                                                const AbortCheck& abort) {
  CHECK(!tokens.empty() && tokens.size() <= context_tokens_,
        "the caller holds the text against the context");
  if (context_ == nullptr) {
    if (Result<void> started = start(); !started) return tl::unexpected(std::move(started.error()));
  }
  llama_memory_clear(llama_get_memory(context_->handle()), false);
  const std::size_t size = model_.embedding_size();
  std::vector<double> sum(size);
  std::vector<Token> chunk;
  std::string message;
  for (std::size_t begin = 0; begin < tokens.size(); begin += chunk.size()) {
    if (abort && abort()) return fail(Code::kCancelled, "embedding cancelled");
    const auto from = tokens.begin() + static_cast<std::ptrdiff_t>(begin);
    chunk.assign(from, from + static_cast<std::ptrdiff_t>(std::min(kChunk, tokens.size() - begin)));
    const llama_batch batch =
        llama_batch_get_one(chunk.data(), static_cast<std::int32_t>(chunk.size()));
    const StepStatus status = context_->decode(batch, abort, message);
    if (status == StepStatus::kAborted) return fail(Code::kCancelled, "embedding cancelled");
    if (status != StepStatus::kDone)
      return fail(Code::kInternal, concat("embedding failed: ", message));
    for (std::size_t row = 0; row < chunk.size(); ++row) {
      const float* const values =
          llama_get_embeddings_ith(context_->handle(), static_cast<std::int32_t>(row));
      if (values == nullptr) return fail(Code::kInternal, "the model gave no embedding");
      for (std::size_t i = 0; i < size; ++i) sum[i] += values[i];
    }
  }
  return unit_vector(sum);
}

}  // namespace sluice
