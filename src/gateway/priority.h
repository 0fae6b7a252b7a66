// How soon a request is to run, in the words of OpenAI (service_tier), vLLM (priority), SMG,
// OpenEngine and llm-d (headers), as one number: higher is sooner, -100 to 100. Where several
// speak, the body's number comes first, then the headers, then service_tier. Thread: any.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gateway/http_message.h"
#include "gateway/openai_fields.h"

namespace sluice {

struct Priority {
  std::int32_t value = 0;
  bool asked_for = false;
  std::vector<std::string_view> not_understood;  // names of headers
};

[[nodiscard]] Priority read_priority(Fields& fields, const HttpHeaders& headers);

// OpenAI's name for the class: "flex", "default" or "priority".
[[nodiscard]] std::string_view tier_of(std::int32_t priority) noexcept;

}  // namespace sluice
