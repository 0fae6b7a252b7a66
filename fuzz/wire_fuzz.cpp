// Any bytes as a GenerateRequest: refused with an error that a client may read, or a request whose
// every number is in its range.
#include "contract/wire.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/check.h"
#include "contract/utf8.h"
#include "contract/validate.h"
#include "inference.pb.h"

namespace sluice {
namespace {

constexpr ServedModel kModel{
    .name = "tiny", .context_tokens = 64, .vocabulary = 1000, .longest_piece = 8};

void check_error(const Error& error) {
  CHECK(error.code == Code::kInvalidArgument || error.code == Code::kUnimplemented ||
            error.code == Code::kNotFound,
        "a request's own faults have three codes");
  CHECK(!error.message.empty() && error.message.size() < 256, "a message is short");
  for (const char c : error.message) {
    CHECK(c >= ' ' && (c < 0x7F || static_cast<unsigned char>(c) >= 0x80), "and printable");
  }
  CHECK(!find_invalid_utf8(error.message), "and UTF-8");
}

void check_accepted(const GenerationRequest& request) {
  const Sampling& s = request.sampling;
  for (const float value : {s.temperature, s.top_p, s.min_p, s.frequency_penalty,
                            s.presence_penalty, s.repetition_penalty}) {
    CHECK(std::isfinite(value), "no NaN and no infinity reaches the engine");
  }
  CHECK(s.repetition_penalty > 0 && s.top_p > 0 && s.top_k >= 0, "in range");
  for (const auto& [token, bias] : s.logit_bias) {
    CHECK(token >= 0 && static_cast<std::uint32_t>(token) < kModel.vocabulary, "a token");
    CHECK(std::isfinite(bias), "a number");
  }
  CHECK(request.n >= 1 && request.stopping.max_tokens.value_or(1) >= 1, "something is asked for");
  CHECK(request.stopping.min_tokens <= request.stopping.max_tokens.value_or(INT32_MAX), "ordered");
  for (const std::string& stop : request.stopping.stop)
    CHECK(!stop.empty(), "no empty stop string");
  std::size_t bytes = 0;
  for (const Message& message : request.prompt.messages) {
    for (const Part& part : message.parts) {
      if (!part.mime_type.empty()) continue;
      CHECK(!find_invalid_utf8(part.bytes), "text is UTF-8");
      bytes += part.bytes.size();
    }
  }
  CHECK(bytes <= kModel.context_tokens * kModel.longest_piece, "a prompt could fit");
}

void check(const std::uint8_t* data, std::size_t size) {
  inference::GenerateRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return;
  Result<GenerationRequest> taken = from_wire(std::move(request));
  if (!taken) {
    check_error(taken.error());
    return;
  }
  // Few inputs would name the model; what lies behind is to be reached by all.
  if (taken->model.empty()) taken->model = "local";
  const Result<void> valid = validate(*taken, Limits{}, kModel);
  if (valid) {
    check_accepted(*taken);
  } else {
    check_error(valid.error());
  }
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::check(data, size);
  return 0;
}
