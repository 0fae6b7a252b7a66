#include "access/key_limits.h"

#include <algorithm>
#include <charconv>

#include "base/concat.h"

namespace sluice {
namespace {

Result<void> parse_number(std::string_view name, std::string_view text, std::uint32_t& number) {
  if (number != 0) return invalid(concat(name, " is given twice"));
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && parsed == end && number >= 1 && number <= kMaxPerMinute) return {};
  return invalid(concat(name, " is not a number from 1 to ", kMaxPerMinute));
}

Result<void> parse_models(std::string_view text, std::vector<std::string>& models) {
  if (!models.empty()) return invalid("models is given twice");
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view model = text.substr(0, comma);
    if (model.empty()) return invalid("models has an empty name");
    models.emplace_back(model);
    if (comma == std::string_view::npos) return {};
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<void> parse_key_limit(std::string_view field, KeyLimits& limits) {
  if (field == "trusted") {
    limits.trusted = true;
    return {};
  }
  const std::size_t equals = std::min(field.find('='), field.size());
  const std::string_view name = field.substr(0, equals);
  const std::string_view text = field.substr(std::min(equals + 1, field.size()));
  if (name == "rpm") return parse_number(name, text, limits.requests_per_minute);
  if (name == "tpm") return parse_number(name, text, limits.tokens_per_minute);
  if (name == "streams") return parse_number(name, text, limits.streams);
  if (name == "models") return parse_models(text, limits.models);
  return invalid("a field is none of rpm=N tpm=N streams=N models=A,B trusted");
}

std::string to_text(const KeyLimits& limits) {
  std::string text;
  const auto add_number = [&text](const char* name, std::uint32_t number) {
    if (number != 0) text += concat(' ', name, '=', number);
  };
  add_number("rpm", limits.requests_per_minute);
  add_number("tpm", limits.tokens_per_minute);
  add_number("streams", limits.streams);
  for (std::size_t i = 0; i < limits.models.size(); ++i)
    text += (i == 0 ? " models=" : ",") + limits.models[i];
  if (limits.trusted) text += " trusted";
  return text;
}

bool allows_model(const KeyLimits& limits, std::string_view model) noexcept {
  return limits.models.empty() ||
         std::find(limits.models.begin(), limits.models.end(), model) != limits.models.end();
}

}  // namespace sluice
