// Bodies of every endpoint: whatever the bytes, they are parsed or refused with a clear error, and
// what an answer to them would say is JSON in UTF-8.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "contract/utf8.h"
#include "gateway/gateway_limits.h"
#include "gateway/http_message.h"
#include "gateway/openai_request.h"

namespace sluice {
namespace {

template <typename T>
void check_refusal(const ApiResult<T>& parsed) {
  if (parsed) return;
  const ApiError& error = parsed.error();
  CHECK(error.error.code == Code::kInvalidArgument, "a body is the client's fault");
  CHECK(!error.error.message.empty() && !error.code.empty(), "the fault is named");
  CHECK(!find_invalid_utf8(to_json(error)), "the error is UTF-8");
}

void check_request(const ApiResult<OpenAiRequest>& parsed, const GatewayLimits& limits) {
  check_refusal(parsed);
  if (!parsed) return;
  CHECK(!parsed->generations.empty() && !parsed->routing.models.empty(), "there is work to do");
  std::uint64_t choices = 0;
  for (const GenerationRequest& generation : parsed->generations) {
    CHECK(generation.n >= 1 && generation.priority >= -100 && generation.priority <= 100,
          "what is normalised here is in its range");
    choices += static_cast<std::uint64_t>(generation.n);
  }
  CHECK(choices <= limits.max_choices, "choices are bounded");
  for (const std::string& warning : parsed->warnings) {
    CHECK(warning.find_first_of("\r\n") == std::string::npos, "a warning fits a header");
  }
}

void check(const std::uint8_t* data, std::size_t size) {
  const GatewayLimits limits;
  HttpRequest request;
  if (size > 0) request.body.assign(reinterpret_cast<const char*>(data), size);
  check_request(parse_chat(request, limits, false), limits);
  check_request(parse_completion(request, limits, false), limits);
  check_request(parse_responses(request, limits, true), limits);
  check_refusal(parse_embedding(request, limits, false));
  check_refusal(parse_tokenize(request, limits, false));
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::check(data, size);
  return 0;
}
