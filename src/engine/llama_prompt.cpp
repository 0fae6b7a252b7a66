#include "engine/llama_prompt.h"

#include <llama.h>

#include <cctype>
#include <cstdint>
#include <exception>
#include <limits>
#include <random>
#include <utility>

#include "base/concat.h"

namespace sluice {
namespace {

std::vector<SpecialToken> special_tokens_of(const llama_vocab* vocab) {
  std::vector<SpecialToken> tokens;
  for (Token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
    const auto attributes = static_cast<unsigned>(llama_vocab_get_attr(vocab, token));
    if ((attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) == 0) continue;
    tokens.push_back({token, llama_vocab_get_text(vocab, token),
                      (attributes & LLAMA_TOKEN_ATTR_LSTRIP) != 0,
                      (attributes & LLAMA_TOKEN_ATTR_RSTRIP) != 0});
  }
  return tokens;
}

// Twenty digits that no client can foresee. Digits, because templates change letters' case.
std::string random_mark() {
  std::random_device device;
  std::uniform_int_distribution<int> digit('0', '9');
  std::string mark;
  for (int i = 0; i < 20; ++i) mark += static_cast<char>(digit(device));
  return mark;
}

std::string without(std::string_view text, std::string_view mark) {
  std::string result;
  while (true) {
    const std::size_t found = text.find(mark);
    result += text.substr(0, found);
    if (found == std::string_view::npos) return result;
    text.remove_prefix(found + mark.size());
  }
}

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

Result<std::string> text_of(const Message& message, std::size_t index) {
  std::string text;
  for (const Part& part : message.parts) {
    if (!part.mime_type.empty() && !part.mime_type.starts_with("text/")) {
      return invalid(concat("messages[", index, "].mime_type: this model takes text only"));
    }
    text += part.bytes;
  }
  return text;
}

// A rendered prompt as the model takes it: plain text, each piece followed by at most one control
// token.
struct Piece {
  std::string text;
  const SpecialToken* special = nullptr;
};

std::vector<Piece> pieces_of(const std::vector<RenderedPart>& parts,
                             const SpecialTokens& special_tokens) {
  std::vector<Piece> pieces(1);
  bool skip_space = false;
  for (const RenderedPart& part : parts) {
    for (std::size_t i = 0; i < part.text.size();) {
      const SpecialToken* const special =
          part.from_message ? nullptr : special_tokens.at(part.text, i);
      if (special == nullptr) {
        skip_space = skip_space && is_space(part.text[i]);
        if (!skip_space) pieces.back().text += part.text[i];
        ++i;
        continue;
      }
      std::string& before = pieces.back().text;
      while (special->strips_left && !before.empty() && is_space(before.back())) before.pop_back();
      pieces.back().special = special;
      pieces.emplace_back();
      skip_space = special->strips_right;
      i += special->text.size();
    }
  }
  return pieces;
}

}  // namespace

LlamaPrompt::LlamaPrompt(const LlamaModel& model,
                         std::unique_ptr<const LlamaTemplate> chat_template)
    : model_(model),
      template_(std::move(chat_template)),
      special_(special_tokens_of(model.vocab())) {}

Result<std::vector<Token>> LlamaPrompt::tokenize(const PromptSource& source) const {
  std::vector<Token> tokens;
  if (!source.messages.empty()) {
    Result<std::vector<Token>> rendered = tokenize_messages(source.messages);
    if (!rendered) return rendered;
    tokens = std::move(*rendered);
  } else if (source.raw) {
    if (Result<void> plain = append_plain(*source.raw, tokens); !plain)
      return tl::unexpected(std::move(plain.error()));
  }
  const bool wants_start = llama_vocab_get_add_bos(model_.vocab()) || tokens.empty();
  if (wants_start && (tokens.empty() || tokens.front() != start_token()))
    tokens.insert(tokens.begin(), start_token());
  return tokens;
}

Result<std::vector<Token>> LlamaPrompt::tokenize_messages(
    const std::vector<Message>& messages) const {
  const std::string mark = random_mark();
  std::vector<TemplateMessage> broken_up;
  broken_up.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Result<std::string> text = text_of(messages[i], i);
    if (!text) return tl::unexpected(std::move(text.error()));
    broken_up.push_back({messages[i].role, special_.broken_up(*text, mark)});
  }
  Result<std::vector<RenderedPart>> parts = template_->render(std::move(broken_up));
  if (!parts) return tl::unexpected(std::move(parts.error()));

  std::vector<Token> tokens;
  for (const Piece& piece : pieces_of(*parts, special_)) {
    Result<void> plain = append_plain(without(piece.text, mark), tokens);
    if (!plain) return tl::unexpected(std::move(plain.error()));
    if (piece.special != nullptr) tokens.push_back(piece.special->token);
  }
  return tokens;
}

Result<void> LlamaPrompt::append_plain(std::string_view text, std::vector<Token>& out) const {
  constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::size_t kPrefix = 2;  // tokens that a tokenizer may put before a text
  if (text.empty()) return {};
  if (text.size() + kPrefix > kMost)
    return invalid(concat("prompt: ", text.size(), " bytes of text are too many to tokenise"));
  const auto tokenize_into = [&](std::size_t room) {
    const std::size_t before = out.size();
    out.resize(before + room);
    const std::int32_t count =
        llama_tokenize(model_.vocab(), text.data(), static_cast<std::int32_t>(text.size()),
                       out.data() + before, static_cast<std::int32_t>(room), false, false);
    out.resize(before + static_cast<std::size_t>(count > 0 ? count : 0));
    return count;
  };
  try {
    // Most text has three bytes or more to a token; where it has fewer, the tokenizer says how many
    // there are.
    std::int32_t count = tokenize_into(text.size() / 2 + kPrefix);
    if (count < 0 && count != std::numeric_limits<std::int32_t>::min()) {
      count = tokenize_into(static_cast<std::size_t>(-count));
    }
    if (count < 0) return invalid("prompt: too many tokens");
    return {};
  } catch (const std::exception& exception) {
    return invalid(concat("prompt: the model's tokenizer refuses it: ", exception.what()));
  }
}

Token LlamaPrompt::start_token() const {
  for (const Token token : {llama_vocab_bos(model_.vocab()), llama_vocab_eos(model_.vocab()),
                            llama_vocab_nl(model_.vocab())}) {
    if (token != LLAMA_TOKEN_NULL) return token;
  }
  return 0;
}

}  // namespace sluice
