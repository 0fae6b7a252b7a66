#include "gateway/openai_messages.h"

#include <optional>
#include <string>
#include <utility>

#include "gateway/openai_parts.h"

namespace sluice {
namespace {

std::optional<Role> role_of(std::string_view name) noexcept {
  if (name == "system" || name == "developer") return Role::kSystem;
  if (name == "user") return Role::kUser;
  if (name == "assistant") return Role::kAssistant;
  return std::nullopt;
}

Role read_role(Fields& fields) {
  const std::string_view name = fields.text("role");
  const auto role = role_of(name);
  if (name.empty()) {
    fields.fail_missing("role");
  } else if (name == "tool" || name == "function") {
    fields.fail_unsupported("role", "\"tool\" is not served");
  } else if (!role) {
    fields.fail("role", "must be system, developer, user or assistant");
  }
  return role.value_or(Role::kUser);
}

void refuse_calls(Fields& fields) {
  for (const std::string_view name : {"tool_calls", "function_call", "tool_call_id"}) {
    if (fields.has_entries(name)) fields.fail_unsupported(name);
  }
}

std::vector<Part> read_parts(Fields& fields, CacheMarks& marks) {
  std::vector<Part> parts;
  std::vector<Fields> list = fields.objects("content");
  if (list.empty()) fields.fail("content", "must not be an empty list");
  parts.reserve(list.size());
  for (Fields& part : list) {
    parts.push_back(read_part(part));
    parts.back().cache_breakpoint = read_cache_mark(part, marks);
  }
  return parts;
}

std::vector<Part> read_content(Fields& fields, Role role, CacheMarks& marks) {
  std::vector<Part> parts;
  switch (fields.kind("content")) {
    case FieldKind::kString:
      parts.emplace_back();
      fields.read("content", parts.back().bytes);
      break;
    case FieldKind::kList:
      return read_parts(fields, marks);
    case FieldKind::kAbsent:
      if (role != Role::kAssistant) {
        fields.fail_missing("content");
      } else if (std::string refusal; fields.read("refusal", refusal)) {
        parts.push_back(Part{std::move(refusal)});
      }
      break;
    case FieldKind::kObject:
    case FieldKind::kTokens:
    case FieldKind::kOther:
      fields.fail("content", "must be a string or a list of parts", "invalid_type");
      break;
  }
  return parts;
}

Message read_message(Fields& fields, CacheMarks& marks) {
  Message message;
  message.role = read_role(fields);
  if (!fields.text("name").empty()) fields.fail_unsupported("name");
  refuse_calls(fields);
  message.parts = read_content(fields, message.role, marks);
  if (read_cache_mark(fields, marks) && !message.parts.empty()) {
    message.parts.back().cache_breakpoint = true;
  }
  return message;
}

}  // namespace

std::vector<Message> read_messages(Fields& fields, std::string_view name, CacheMarks& marks) {
  std::vector<Message> messages;
  std::vector<Fields> list = fields.objects(name);
  if (list.empty()) {
    fields.fail(name, fields.has(name) ? "must not be empty" : "is required",
                "missing_required_parameter");
  }
  messages.reserve(list.size());
  for (Fields& message : list) {
    if (fields.failed()) break;
    messages.push_back(read_message(message, marks));
  }
  return messages;
}

void mark_end(std::vector<Message>& messages) {
  if (!messages.empty() && !messages.back().parts.empty()) {
    messages.back().parts.back().cache_breakpoint = true;
  }
}

}  // namespace sluice
