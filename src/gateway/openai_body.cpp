#include "gateway/openai_body.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cstddef>
#include <string>

#include "base/concat.h"

namespace sluice {
namespace {

constexpr std::size_t kLeastMemory = 1024;
constexpr std::size_t kMostMemoryAhead = 1 << 20;

tl::unexpected<ApiError> not_json(std::string message) {
  return refuse(Code::kInvalidArgument, std::move(message), "", "invalid_json");
}

// Past the string whose text begins at `begin`: its closing quote has an even number of backslashes
// before it.
std::size_t string_end(std::string_view body, std::size_t begin) noexcept {
  for (std::size_t quote = body.find('"', begin); quote != std::string_view::npos;
       quote = body.find('"', quote + 1)) {
    std::size_t text = quote;
    while (text > begin && body[text - 1] == '\\') --text;
    if ((quote - text) % 2 == 0) return quote + 1;
  }
  return body.size();
}

// Whether `body` holds at most about `limit` values, seen without parsing it: a parsed value takes
// ten times the memory of its text, so that the body's own bound is not enough.
bool has_few_values(std::string_view body, std::size_t limit) noexcept {
  std::size_t values = 1;
  for (std::size_t at = 0; at < body.size() && values <= limit;) {
    const char c = body[at++];
    if (c == '"') at = string_end(body, at);
    if (c == ',' || c == '[' || c == '{') ++values;
  }
  return values <= limit;
}

}  // namespace

ApiResult<JsonBody> JsonBody::parse(std::string_view body, const GatewayLimits& limits) {
  namespace json = boost::json;
  if (!has_few_values(body, limits.max_json_values)) {
    return not_json(
        concat("the body holds more than ", limits.max_json_values, " values (--max-json-values)"));
  }
  JsonBody parsed(std::make_unique<json::monotonic_resource>(
      std::clamp(body.size(), kLeastMemory, kMostMemoryAhead)));
  json::parse_options options;
  options.max_depth = limits.max_json_depth;
  json::error_code error;
  parsed.value_ = json::parse(body, error, parsed.memory_.get(), options);
  if (error == json::error::too_deep) {
    return not_json(concat("the body is nested deeper than ", limits.max_json_depth,
                           " levels (--max-json-depth)"));
  }
  if (error) return not_json(concat("the body is not valid JSON: ", error.message()));
  if (!parsed.value_.is_object()) return not_json("the body must be a JSON object");
  return parsed;
}

}  // namespace sluice
