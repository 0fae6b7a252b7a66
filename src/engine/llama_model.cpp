#include "engine/llama_model.h"

#include <llama.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <filesystem>
#include <system_error>

#include "base/concat.h"
#include "engine/llama_log.h"

namespace sluice {
namespace {

constexpr std::size_t kLongestName = 64;

std::string metadata(const llama_model* model, const char* key) {
  char value[256];
  const int length = llama_model_meta_val_str(model, key, value, sizeof value);
  return length > 0 ? std::string(value) : std::string();
}

std::string plain_name(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, kLongestName)) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
    name += plain ? c : '-';
  }
  return name;
}

Result<void> check_file(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return fail(Code::kNotFound, concat("model file ", path, ": no such file"));
  }
  if (!std::filesystem::is_regular_file(status))
    return invalid(concat("model file ", path, ": not a regular file"));
  return {};
}

llama_model* load_weights(const std::string& path) {
  llama_model_params params = llama_model_default_params();
  params.load_mode = LLAMA_LOAD_MODE_MMAP;
  try {
    return llama_model_load_from_file(path.c_str(), params);
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace

std::string token_text(const llama_vocab* vocab, Token token, bool with_control) {
  std::string text(32, '\0');
  int length = llama_token_to_piece(vocab, token, text.data(), static_cast<int>(text.size()), 0,
                                    with_control);
  if (length < 0) {
    text.resize(static_cast<std::size_t>(-length));
    length = llama_token_to_piece(vocab, token, text.data(), static_cast<int>(text.size()), 0,
                                  with_control);
  }
  text.resize(static_cast<std::size_t>(std::max(length, 0)));
  return text;
}

Result<std::unique_ptr<LlamaModel>> LlamaModel::load(const std::string& path,
                                                     const std::string& known_as) {
  if (Result<void> file = check_file(path); !file) return tl::unexpected(std::move(file.error()));
  route_llama_log();
  const LlamaErrors errors;
  llama_model* const handle = load_weights(path);
  if (handle == nullptr) return invalid(concat("model file ", path, ": ", errors.text()));

  std::unique_ptr<LlamaModel> model(new LlamaModel(handle, known_as));
  if (model->vocabulary() == 0)
    return invalid(concat("model file ", path, ": it has no vocabulary"));
  if (!llama_model_has_decoder(handle) || llama_model_has_encoder(handle)) {
    return invalid(
        concat("model file ", path, ": not a model that generates text from text alone"));
  }
  return model;
}

LlamaModel::LlamaModel(llama_model* model, const std::string& known_as)
    : model_(model),
      vocab_(llama_model_get_vocab(model)),
      name_(plain_name(metadata(model, "general.name"))) {
  if (name_.empty()) name_ = plain_name(std::filesystem::path(known_as).stem().string());
  read_pieces();
  std::int32_t suppressed = 0;
  const llama_token* const tokens = llama_vocab_get_suppress_tokens(vocab_, &suppressed);
  suppressed_tokens_.assign(tokens, tokens + suppressed);
}

LlamaModel::~LlamaModel() { llama_model_free(model_); }

void LlamaModel::read_pieces() {
  const Token tokens = llama_vocab_n_tokens(vocab_);
  ends_.reserve(static_cast<std::size_t>(tokens));
  for (Token token = 0; token < tokens; ++token) {
    const std::string piece = token_text(vocab_, token, false);
    longest_piece_ = std::max(longest_piece_, static_cast<std::uint32_t>(piece.size()));
    piece_bytes_ += piece;
    ends_.push_back(static_cast<std::uint32_t>(piece_bytes_.size()));
    if (llama_vocab_is_eog(vocab_, token)) end_tokens_.push_back(token);
  }
}

std::string LlamaModel::weights() const {
  const auto type = llama_model_ftype(model_) & ~LLAMA_FTYPE_GUESSED;
  return llama_ftype_name(static_cast<llama_ftype>(type));
}

std::uint32_t LlamaModel::trained_context() const noexcept {
  return static_cast<std::uint32_t>(std::max(llama_model_n_ctx_train(model_), 1));
}

std::uint32_t LlamaModel::embedding_size() const noexcept {
  return static_cast<std::uint32_t>(std::max(llama_model_n_embd_out(model_), 0));
}

bool LlamaModel::ends_generation(Token token) const noexcept {
  return llama_vocab_is_eog(vocab_, token);
}

}  // namespace sluice
