#include "gateway/priority.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>

#include "contract/validate.h"

namespace sluice {
namespace {

constexpr std::int32_t kRaised = 50;

struct Name {
  std::string_view name;
  std::int32_t value;
};

constexpr Name kTiers[] = {{"auto", 0},        {"default", 0},        {"scale", 0},
                           {"flex", -kRaised}, {"priority", kRaised}, {"fast", kRaised}};
constexpr Name kSmgClasses[] = {
    {"system", kMaxPriority}, {"interactive", kRaised}, {"default", 0}, {"bulk", -kRaised}};
constexpr Name kObjectives[] = {{"critical", kRaised}, {"standard", 0}, {"sheddable", -kRaised}};

template <std::size_t kCount>
std::optional<std::int32_t> value_of(const Name (&names)[kCount], std::string_view name) noexcept {
  const auto* found = std::find_if(std::begin(names), std::end(names),
                                   [name](const Name& known) { return known.name == name; });
  return found == std::end(names) ? std::nullopt : std::optional(found->value);
}

std::optional<std::int32_t> number_of(std::string_view text) noexcept {
  std::int32_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  return error == std::errc() && end == last ? std::optional(number) : std::nullopt;
}

std::optional<std::int32_t> of_header(std::string_view name, std::string_view value) noexcept {
  if (name == "openengine-priority") return number_of(value);
  return name == "x-smg-priority" ? value_of(kSmgClasses, value) : value_of(kObjectives, value);
}

void read_headers(const HttpHeaders& headers, Priority& priority) {
  for (const std::string_view name :
       {"openengine-priority", "x-smg-priority", "x-llm-d-inference-objective",
        "x-gateway-inference-objective"}) {
    const std::string* header = headers.find(name);
    if (header == nullptr) continue;
    const auto value = of_header(name, *header);
    if (!value) {
      priority.not_understood.push_back(name);
    } else if (!priority.asked_for) {
      priority.value = *value;
      priority.asked_for = true;
    }
  }
}

}  // namespace

Priority read_priority(Fields& fields, const HttpHeaders& headers) {
  Priority priority;
  std::int32_t sooner_is_lower = 0;  // vLLM's sign
  if (fields.read("priority", sooner_is_lower)) {
    priority.value = -std::clamp(sooner_is_lower, -kMaxPriority, kMaxPriority);
    priority.asked_for = true;
  }
  read_headers(headers, priority);
  const std::string_view tier = fields.text("service_tier");
  if (!tier.empty()) {
    const auto value = value_of(kTiers, tier);
    if (!value) fields.fail("service_tier", "must be auto, default, flex, scale, priority or fast");
    if (!priority.asked_for) priority.value = value.value_or(0);
    priority.asked_for = true;
  }
  priority.value = std::clamp(priority.value, -kMaxPriority, kMaxPriority);
  return priority;
}

std::string_view tier_of(std::int32_t priority) noexcept {
  if (priority < 0) return "flex";
  return priority > 0 ? "priority" : "default";
}

}  // namespace sluice
