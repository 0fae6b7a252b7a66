#include "load/sse_counter.h"

#include <algorithm>
#include <boost/json.hpp>

namespace sluice {
namespace {

namespace json = boost::json;

// Whether a member of one of these names holds text that is not empty.
bool has_text(std::string_view event) {
  for (const std::string_view member :
       {std::string_view(R"("content":)"), std::string_view(R"("reasoning_content":)"),
        std::string_view(R"("text":)")}) {
    std::size_t at = event.find(member);
    if (at == std::string_view::npos) continue;
    at += member.size();
    while (at < event.size() && event[at] == ' ') ++at;
    if (at + 1 < event.size() && event[at] == '"' && event[at + 1] != '"') return true;
  }
  return false;
}

std::uint32_t count_in(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr || !value->is_int64() || value->get_int64() < 0) return 0;
  return static_cast<std::uint32_t>(value->get_int64());
}

std::optional<SseUsage> usage_of(const json::object& event) {
  const json::value* const found = event.if_contains("usage");
  if (found == nullptr || !found->is_object()) return std::nullopt;
  const json::object& object = found->get_object();
  SseUsage usage{.prompt_tokens = count_in(object, "prompt_tokens"),
                 .completion_tokens = count_in(object, "completion_tokens")};
  const json::value* const details = object.if_contains("prompt_tokens_details");
  if (details != nullptr && details->is_object()) {
    usage.cached_tokens = count_in(details->get_object(), "cached_tokens");
  }
  return usage;
}

std::string error_of(const json::object& event) {
  const json::value* const found = event.if_contains("error");
  if (found == nullptr || found->is_null()) return {};
  if (!found->is_object()) return "error";
  for (const std::string_view name : {"code", "type"}) {
    const json::value* const value = found->get_object().if_contains(name);
    if (value == nullptr) continue;
    if (value->is_string() && !value->get_string().empty()) return std::string(value->get_string());
    if (value->is_int64()) return std::to_string(value->get_int64());
  }
  return "error";
}

}  // namespace

void SseCounter::clear() {
  line_.clear();
  usage_.reset();
  error_.clear();
  done_ = false;
}

std::uint32_t SseCounter::take(std::string_view bytes) {
  std::uint32_t events = 0;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (end == std::string_view::npos || !line_.empty()) {
      line_.append(piece.substr(0, kMostLineBytes - std::min(kMostLineBytes, line_.size())));
    }
    if (end == std::string_view::npos) break;
    events += take_line(line_.empty() ? piece : std::string_view(line_));
    line_.clear();
    bytes.remove_prefix(end + 1);
  }
  return events;
}

bool SseCounter::take_line(std::string_view line) {
  constexpr std::string_view kData = "data:";
  if (!line.starts_with(kData)) return false;  // a comment, or between two events
  line.remove_prefix(kData.size());
  if (line.find("[DONE]") < 3) {
    done_ = true;
    return false;
  }
  if (line.find(R"("usage":{)") != std::string_view::npos ||
      line.find(R"("usage": {)") != std::string_view::npos ||
      line.find(R"("error")") != std::string_view::npos) {
    boost::system::error_code broken;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    const json::value event = json::parse(line, broken);
    if (!broken && event.is_object()) {
      if (auto usage = usage_of(event.get_object())) usage_ = usage;
      if (std::string error = error_of(event.get_object()); !error.empty()) {
        error_ = std::move(error);
        return false;
      }
    }
  }
  return has_text(line);
}

}  // namespace sluice
