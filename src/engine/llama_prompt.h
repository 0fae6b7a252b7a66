// LlamaPrompt: turns what a request asks about into the model's tokens. Only the template's own
// text may become a control token; text of a message never does, whatever it holds and whatever the
// template does with it. How: special texts inside messages are broken up by a random mark before
// rendering; in the rendered text control tokens are taken from the template's parts alone, and all
// text between them is tokenised as plain text with the mark taken out again. Bounded by the text:
// time and memory grow with it. Thread: any after load; never the engine thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "contract/generation.h"
#include "engine/llama_model.h"
#include "engine/llama_template.h"
#include "engine/special_tokens.h"

namespace sluice {

class LlamaPrompt {
 public:
  // `model` outlives it.
  LlamaPrompt(const LlamaModel& model, std::unique_ptr<const LlamaTemplate> chat_template);

  // At least one token. Errors: kInvalidArgument (the template refuses; a part that is not text; a
  // text too long to tokenise).
  [[nodiscard]] Result<std::vector<Token>> tokenize(const PromptSource& source) const;

  [[nodiscard]] bool has_template_of_model() const noexcept { return template_->of_model(); }

 private:
  [[nodiscard]] Result<std::vector<Token>> tokenize_messages(
      const std::vector<Message>& messages) const;
  [[nodiscard]] Result<void> append_plain(std::string_view text, std::vector<Token>& out) const;
  [[nodiscard]] Token start_token() const;

  const LlamaModel& model_;
  const std::unique_ptr<const LlamaTemplate> template_;
  const SpecialTokens special_;
};

}  // namespace sluice
