#include "engine/llama_template.h"

#include <chat.h>
#include <jinja/runtime.h>
#include <llama.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <string_view>
#include <utility>

#include "base/concat.h"

namespace sluice {
namespace {

constexpr std::size_t kLongestReason = 200;

std::string_view role_name(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      return "tool";
    case Role::kUser:
      break;
  }
  return "user";
}

// The interpreter wraps a reason in several lines that quote the template; the reason alone is the
// last.
std::string reason_of(const std::exception& exception) {
  std::string_view text = exception.what();
  for (const std::string_view before : {"Error: ", "Jinja Exception: "}) {
    const std::size_t found = text.rfind(before);
    if (found != std::string_view::npos) text.remove_prefix(found + before.size());
  }
  std::string reason(text.substr(0, kLongestReason));
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  return reason;
}

std::string today(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, format, &local));
}

jinja::value plain_value(std::string_view text) {
  return jinja::mk_val<jinja::value_string>(std::string(text));
}

// Text of a message: the interpreter keeps the mark through what a template does with it.
jinja::value message_value(const std::string& text) {
  auto value = jinja::mk_val<jinja::value_string>(text);
  value->mark_input();
  return value;
}

jinja::value content_value(const std::string& text, const jinja::caps& template_can) {
  if (template_can.supports_string_content || !template_can.supports_typed_content)
    return message_value(text);
  auto part = jinja::mk_val<jinja::value_object>();
  part->insert("type", plain_value("text"));
  part->insert("text", message_value(text));
  auto parts = jinja::mk_val<jinja::value_array>();
  parts->push_back(part);
  return parts;
}

// As llama.cpp has it for templates that know no system role: its text goes before that of the next
// message.
void join_system_message(std::vector<TemplateMessage>& messages) {
  if (messages.size() < 2 || messages.front().role != Role::kSystem) return;
  messages[1].text = concat(messages[0].text, "\n", messages[1].text);
  messages.erase(messages.begin());
}

}  // namespace

LlamaTemplate::LlamaTemplate(std::unique_ptr<const common_chat_template> parsed, bool of_model)
    : parsed_(std::move(parsed)), of_model_(of_model) {}

LlamaTemplate::~LlamaTemplate() = default;

Result<std::unique_ptr<LlamaTemplate>> LlamaTemplate::load(const LlamaModel& model) {
  const auto text_of = [&](Token token) {
    return token == LLAMA_TOKEN_NULL ? std::string() : token_text(model.vocab(), token, true);
  };
  try {
    // Also mends known faults of certain models' templates.
    const common_chat_templates_ptr known = common_chat_templates_init(model.handle(), "");
    return parse(common_chat_templates_source(known.get()), text_of(llama_vocab_bos(model.vocab())),
                 text_of(llama_vocab_eos(model.vocab())),
                 common_chat_templates_was_explicit(known.get()));
  } catch (const std::exception& exception) {
    return invalid(concat("the model's chat template: ", reason_of(exception)));
  }
}

Result<std::unique_ptr<LlamaTemplate>> LlamaTemplate::parse(const std::string& source,
                                                            const std::string& bos_text,
                                                            const std::string& eos_text,
                                                            bool of_model) {
  try {
    auto parsed = std::make_unique<const common_chat_template>(source, bos_text, eos_text);
    return std::unique_ptr<LlamaTemplate>(new LlamaTemplate(std::move(parsed), of_model));
  } catch (const std::exception& exception) {
    return invalid(concat("the model's chat template: ", reason_of(exception)));
  }
}

Result<std::vector<RenderedPart>> LlamaTemplate::render(
    std::vector<TemplateMessage> messages) const {
  const jinja::caps template_can = parsed_->original_caps();
  if (!template_can.supports_system_role) join_system_message(messages);
  try {
    auto list = jinja::mk_val<jinja::value_array>();
    for (const TemplateMessage& message : messages) {
      auto object = jinja::mk_val<jinja::value_object>();
      object->insert("role", plain_value(role_name(message.role)));
      object->insert("content", content_value(message.text, template_can));
      list->push_back(object);
    }
    jinja::context context(parsed_->source());
    context.set_val("messages", list);
    context.set_val("bos_token", plain_value(parsed_->bos_token()));
    context.set_val("eos_token", plain_value(parsed_->eos_token()));
    context.set_val("add_generation_prompt", jinja::mk_val<jinja::value_bool>(true));
    context.set_val("enable_thinking", jinja::mk_val<jinja::value_bool>(true));
    context.set_val("date_string", plain_value(today("%d %b %Y")));
    context.set_val("datetime", plain_value(today("%b %d %Y")));

    jinja::runtime runtime(context);
    const jinja::value output = runtime.execute(parsed_->prog);
    std::vector<RenderedPart> parts;
    for (const jinja::string_part& part :
         jinja::runtime::gather_string_parts(output)->as_string().parts) {
      parts.push_back({part.val, part.is_input});
    }
    return parts;
  } catch (const std::exception& exception) {
    return invalid(
        concat("messages: the model's chat template refuses them: ", reason_of(exception)));
  }
}

}  // namespace sluice
