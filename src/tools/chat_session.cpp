#include "tools/chat_session.h"

#include <utility>

#include "contract/wire_client.h"
#include "inference.pb.h"
#include "tools/terminal_text.h"

namespace sluice {
namespace {

void add(const Message& message, inference::GenerateRequest& request) {
  inference::Message& out = *request.add_messages();
  out.set_role(role_name(message.role));
  for (const Part& part : message.parts) {
    inference::Part& to = *out.add_parts();
    to.set_content(part.bytes);
    to.set_mime_type(part.mime_type);
  }
}

}  // namespace

ChatSession::ChatSession(const ChatOptions& options) : options_(options) {}

void ChatSession::ask(std::string prompt, inference::GenerateRequest& out) {
  asked_ = {Role::kUser, {}};
  if (turns_.empty()) {
    for (const Part& file : options_.files) {
      asked_.parts.push_back(file);
      asked_.parts.push_back({"\n\n", ""});  // text parts are joined as they are
    }
  }
  asked_.parts.push_back({std::move(prompt), ""});

  out.Clear();
  out.set_model(options_.model);
  out.set_temperature(options_.temperature);
  out.set_top_p(options_.top_p);
  if (options_.max_tokens) out.set_max_tokens(*options_.max_tokens);
  if (options_.seed) out.set_seed(*options_.seed);
  if (!options_.system.empty()) add({Role::kSystem, {{options_.system, ""}}}, out);
  for (const Message& turn : turns_) add(turn, out);
  add(asked_, out);
}

void ChatSession::answered(std::string answer) {
  turns_.push_back(std::move(asked_));
  // An answer is any bytes, and may have been cut; what is sent back as text must be text.
  turns_.push_back({Role::kAssistant, {{valid_text(answer), ""}}});
}

}  // namespace sluice
