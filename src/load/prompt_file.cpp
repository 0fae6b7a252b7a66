// The prompts of --prompts: one JSON object a line, {"prompt": "…"} or {"messages": [{"role": "…",
// "content": "…"}, …]}, either with "output_tokens" (or "max_tokens").
#include <boost/json.hpp>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "base/concat.h"
#include "load/workload.h"

namespace sluice {
namespace {

namespace json = boost::json;

std::optional<Role> role_of(std::string_view name) {
  if (name == "system" || name == "developer") return Role::kSystem;
  if (name == "user") return Role::kUser;
  if (name == "assistant") return Role::kAssistant;
  return std::nullopt;
}

const json::string* text_in(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_string();
}

bool add_message(const json::value& value, std::vector<Message>& messages) {
  const json::object* const object = value.if_object();
  if (object == nullptr) return false;
  const json::string* const role = text_in(*object, "role");
  const json::string* const content = text_in(*object, "content");
  if (role == nullptr || content == nullptr) return false;
  const auto known = role_of(*role);
  if (!known) return false;
  Message& message = messages.emplace_back();
  message.role = *known;
  message.parts.push_back({.bytes = std::string(*content)});
  return true;
}

bool read_messages(const json::object& object, std::vector<Message>& messages) {
  if (const json::string* const prompt = text_in(object, "prompt")) {
    messages.emplace_back().parts.push_back({.bytes = std::string(*prompt)});
    return true;
  }
  const json::value* const listed = object.if_contains("messages");
  if (listed == nullptr || listed->if_array() == nullptr || listed->get_array().empty())
    return false;
  for (const json::value& each : listed->get_array()) {
    if (!add_message(each, messages)) return false;
  }
  return true;
}

bool read_output_tokens(const json::object& object, std::optional<std::int32_t>& tokens) {
  for (const std::string_view name : {"output_tokens", "max_tokens"}) {
    const json::value* const value = object.if_contains(name);
    if (value == nullptr) continue;
    const std::int64_t* const number = value->if_int64();
    if (number == nullptr || *number < 1) return false;
    if (*number > std::numeric_limits<std::int32_t>::max()) return false;
    tokens = static_cast<std::int32_t>(*number);
    return true;
  }
  return true;
}

}  // namespace

Result<std::vector<Workload::FilePrompt>> Workload::read_prompts(const std::string& text) {
  std::vector<FilePrompt> prompts;
  std::size_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view piece = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++line;
    if (piece.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    boost::system::error_code error;
    const json::value value = json::parse(piece, error);
    FilePrompt prompt;
    if (error || !value.is_object() || !read_messages(value.get_object(), prompt.messages) ||
        !read_output_tokens(value.get_object(), prompt.output_tokens)) {
      return invalid(concat("--prompts: line ", line,
                            " is no JSON object with \"prompt\" (text) or \"messages\" (role and "
                            "content), and \"output_tokens\" from 1 if it has any"));
    }
    prompts.push_back(std::move(prompt));
  }
  if (prompts.empty()) return invalid("--prompts: the file has no prompt");
  return prompts;
}

}  // namespace sluice
