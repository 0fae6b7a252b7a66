// LlamaModel: a GGUF model file in memory, and what is known of its vocabulary: the exact bytes of
// each token, which tokens end an answer, which mark structure. Weights are mapped from the file,
// so that a second start costs no reading. Bounded by the file: the pieces take a few bytes for
// each token of the vocabulary. Thread: load once; the rest any (nothing changes).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "contract/generation.h"

struct llama_model;
struct llama_vocab;

namespace sluice {

class LlamaModel {
 public:
  // Errors: kNotFound (no such file), kInvalidArgument (not a GGUF file, truncated, or not a model
  // that generates text). The message names the file and says what is wrong.
  // Where the file has no name for its model, `known_as` gives it.
  [[nodiscard]] static Result<std::unique_ptr<LlamaModel>> load(const std::string& path,
                                                                const std::string& known_as);
  [[nodiscard]] static Result<std::unique_ptr<LlamaModel>> load(const std::string& path) {
    return load(path, path);
  }
  ~LlamaModel();
  LlamaModel(const LlamaModel&) = delete;
  LlamaModel& operator=(const LlamaModel&) = delete;

  [[nodiscard]] llama_model* handle() const noexcept { return model_; }
  [[nodiscard]] const llama_vocab* vocab() const noexcept { return vocab_; }

  // general.name of the file, or the file's own name, of characters [A-Za-z0-9._-] only.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // What most of the weights are kept in, as llama.cpp calls it: "Q8_0".
  [[nodiscard]] std::string weights() const;
  [[nodiscard]] std::uint32_t vocabulary() const noexcept {
    return static_cast<std::uint32_t>(ends_.size());
  }
  [[nodiscard]] std::uint32_t trained_context() const noexcept;
  [[nodiscard]] std::uint32_t embedding_size() const noexcept;

  // Exact bytes that the token adds to a text; empty for control tokens.
  [[nodiscard]] std::string_view piece(Token token) const noexcept {
    const auto i = static_cast<std::size_t>(token);
    const std::uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(piece_bytes_).substr(begin, ends_[i] - begin);
  }
  [[nodiscard]] std::uint32_t longest_piece() const noexcept { return longest_piece_; }

  [[nodiscard]] bool ends_generation(Token token) const noexcept;
  [[nodiscard]] const std::vector<Token>& end_tokens() const noexcept { return end_tokens_; }
  // Tokens that the model's file says must never be generated.
  [[nodiscard]] const std::vector<Token>& suppressed_tokens() const noexcept {
    return suppressed_tokens_;
  }

 private:
  LlamaModel(llama_model* model, const std::string& known_as);
  void read_pieces();

  llama_model* const model_;
  const llama_vocab* const vocab_;
  std::string name_;
  std::string piece_bytes_;          // all pieces, one behind the other
  std::vector<std::uint32_t> ends_;  // of each token's piece in it
  std::uint32_t longest_piece_ = 1;
  std::vector<Token> end_tokens_;
  std::vector<Token> suppressed_tokens_;
};

// The token's text, that of control tokens too.
[[nodiscard]] std::string token_text(const llama_vocab* vocab, Token token, bool with_control);

}  // namespace sluice
