// LlamaTemplate: renders a conversation with the chat template (Jinja) that the model's file
// carries; ChatML where it has none. What comes out is in parts that say whether they are the
// template's own text or a message's. Not bounded by itself: a template is a program, so a model
// file from a hostile source can loop or fill the memory here. Thread: any after load.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "contract/generation.h"
#include "engine/llama_model.h"

struct common_chat_template;

namespace sluice {

struct TemplateMessage {
  Role role = Role::kUser;
  std::string text;
};

struct RenderedPart {
  std::string text;
  bool from_message = false;
};

class LlamaTemplate {
 public:
  // Error: the template does not parse; the message has its reason.
  [[nodiscard]] static Result<std::unique_ptr<LlamaTemplate>> load(const LlamaModel& model);
  // `source` is Jinja; the two texts are its variables bos_token and eos_token.
  [[nodiscard]] static Result<std::unique_ptr<LlamaTemplate>> parse(const std::string& source,
                                                                    const std::string& bos_text,
                                                                    const std::string& eos_text,
                                                                    bool of_model);
  ~LlamaTemplate();

  // Ends where the assistant's turn begins. Error: kInvalidArgument with the template's own reason
  // (e.g. roles in a wrong order).
  [[nodiscard]] Result<std::vector<RenderedPart>> render(
      std::vector<TemplateMessage> messages) const;

  // False: the model has none and this is ChatML.
  [[nodiscard]] bool of_model() const noexcept { return of_model_; }

 private:
  LlamaTemplate(std::unique_ptr<const common_chat_template> parsed, bool of_model);

  const std::unique_ptr<const common_chat_template> parsed_;
  const bool of_model_;
};

}  // namespace sluice
