// What it costs in accuracy to keep a model's weights in another type: how far the distributions of
// the next token are from those of the file's own weights, over a text. The row with the KV cache
// in f16 shows how far apart two settings are that nobody would call different.
//
//   llama_weights_bench MODEL TEXT FOLDER   (FOLDER: for the copies)
#include "engine/llama_weights.h"

#include <llama.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/llama_context.h"

namespace sluice {
namespace {

constexpr std::uint32_t kWindow = 256;     // tokens that are looked at together
constexpr std::size_t kMostTokens = 4096;  // of the text

// A model as it would be served.
struct Candidate {
  std::string name;
  std::unique_ptr<LlamaModel> model;
  std::unique_ptr<LlamaContext> context;
  double divergence = 0;  // sum over the tokens, in nats
  std::size_t agreed = 0;
  double log_loss = 0;  // of the text's own next token
};

template <typename Value>
Value or_exit(Result<Value> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

Candidate make_candidate(std::string name, LlamaOptions options, Weights weights, ggml_type kv) {
  options.weights = weights;
  Candidate candidate{std::move(name), or_exit(load_weights(options)), nullptr};
  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = params.n_ubatch = params.n_outputs_max = kWindow;
  params.n_threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  params.n_threads_batch = params.n_threads;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.type_k = params.type_v = kv;
  candidate.context = or_exit(LlamaContext::make(*candidate.model, params));
  return candidate;
}

std::vector<Token> tokens_of(const LlamaModel& model, const std::string& text) {
  std::vector<Token> tokens(text.size() + 1);
  const int count = llama_tokenize(model.vocab(), text.data(), static_cast<int>(text.size()),
                                   tokens.data(), static_cast<int>(tokens.size()), false, false);
  tokens.resize(std::min(static_cast<std::size_t>(std::max(count, 0)), kMostTokens));
  return tokens;
}

void compute(Candidate& candidate, std::span<const Token> window) {
  llama_context* const context = candidate.context->handle();
  llama_memory_clear(llama_get_memory(context), false);
  llama_batch batch = llama_batch_init(static_cast<int>(window.size()), 0, 1);
  for (const Token token : window) {
    const int row = batch.n_tokens++;
    batch.token[row] = token;
    batch.pos[row] = row;
    batch.n_seq_id[row] = 1;
    batch.seq_id[row][0] = 0;
    batch.logits[row] = 1;
  }
  if (llama_decode(context, batch) != 0) std::exit(1);
  llama_batch_free(batch);
}

// Logarithms of the probabilities that follow row `row`.
void log_probabilities(const Candidate& candidate, int row, std::vector<double>& out) {
  const float* const logits = llama_get_logits_ith(candidate.context->handle(), row);
  out.assign(logits, logits + candidate.model->vocabulary());
  const double top = *std::max_element(out.begin(), out.end());
  double sum = 0;
  for (const double logit : out) sum += std::exp(logit - top);
  for (double& logit : out) logit -= top + std::log(sum);
}

void compare(std::vector<Candidate>& candidates, std::span<const Token> window) {
  for (Candidate& candidate : candidates) compute(candidate, window);
  std::vector<double> reference;
  std::vector<double> probabilities;
  std::vector<double> other;
  for (std::size_t row = 0; row + 1 < window.size(); ++row) {
    log_probabilities(candidates.front(), static_cast<int>(row), reference);
    probabilities.resize(reference.size());
    std::transform(reference.begin(), reference.end(), probabilities.begin(),
                   [](double logarithm) { return std::exp(logarithm); });
    const auto best = std::max_element(reference.begin(), reference.end()) - reference.begin();
    for (Candidate& candidate : candidates) {
      log_probabilities(candidate, static_cast<int>(row), other);
      for (std::size_t i = 0; i < other.size(); ++i)
        candidate.divergence += probabilities[i] * (reference[i] - other[i]);
      candidate.agreed +=
          std::max_element(other.begin(), other.end()) - other.begin() == best ? 1 : 0;
      candidate.log_loss -= other[static_cast<std::size_t>(window[row + 1])];
    }
  }
}

int run(const std::string& model, const std::string& text_file, const std::string& folder) {
  LlamaOptions options;
  options.model_path = model;
  options.weights_folder = folder;
  std::vector<Candidate> candidates;
  candidates.push_back(make_candidate("file", options, Weights::kFile, GGML_TYPE_Q8_0));
  candidates.push_back(make_candidate("file, KV in f16", options, Weights::kFile, GGML_TYPE_F16));
  candidates.push_back(make_candidate("q8_0", options, Weights::kQ8_0, GGML_TYPE_Q8_0));
  candidates.push_back(make_candidate("q4_0", options, Weights::kQ4_0, GGML_TYPE_Q8_0));

  std::ifstream file(text_file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<Token> tokens = tokens_of(*candidates.front().model, text);
  std::size_t compared = 0;
  for (std::size_t begin = 0; begin + kWindow <= tokens.size(); begin += kWindow) {
    compare(candidates, std::span(tokens).subspan(begin, kWindow));
    compared += kWindow - 1;
  }
  if (compared == 0) {
    std::fprintf(stderr, "%s: fewer than %u tokens\n", text_file.c_str(), kWindow);
    return 1;
  }
  const auto count = static_cast<double>(compared);
  std::printf("%zu tokens\n%-16s %10s %14s %11s %9s\n", compared, "weights", "served as",
              "KL (nats)", "same top-1", "perplexity");
  for (const Candidate& candidate : candidates) {
    std::printf("%-16s %10s %14.6f %10.2f%% %9.3f\n", candidate.name.c_str(),
                candidate.model->weights().c_str(), candidate.divergence / count,
                100 * static_cast<double>(candidate.agreed) / count,
                std::exp(candidate.log_loss / count));
  }
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: llama_weights_bench MODEL TEXT FOLDER\n");
    return 1;
  }
  return sluice::run(argv[1], argv[2], argv[3]);
}
