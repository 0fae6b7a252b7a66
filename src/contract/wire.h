// Wire: with wire_client.h, its other side, the only place that maps protobuf messages, gRPC status
// codes and HTTP status codes to our types and back. Thread: any; a ResponseEncoder: one thread at
// a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "contract/generation.h"

namespace grpc {
class Status;
}
namespace inference {
class CountTokensRequest;
class GenerateRequest;
class GenerateResponse;
class Load;
class Status;
}  // namespace inference

namespace sluice {

// Takes the request's bytes (no copy of large contents). Errors: kInvalidArgument (role, both
// prompt and messages, content and parts), kUnimplemented (a field that isn't served, named).
// Ranges are validate()'s business.
[[nodiscard]] Result<GenerationRequest> from_wire(inference::GenerateRequest&& request);
[[nodiscard]] Result<PromptSource> from_wire(inference::CountTokensRequest&& request);

// Makes the messages of one request's stream: counts tokens and offsets for each choice.
class ResponseEncoder {
 public:
  ResponseEncoder(std::string model, std::uint32_t prompt_tokens, std::uint32_t choices);

  // Overwrites `out`.
  void encode(Delta&& delta, inference::GenerateResponse& out);
  // Makes `out` the stream's last message: on top of the last delta if that is in it already, else
  // of an empty message.
  void encode_end(const Usage& usage, inference::GenerateResponse& out) const;

 private:
  struct Choice {
    std::uint32_t tokens = 0;
    std::uint64_t offset = 0;
  };
  std::string model_;  // sent once, then empty
  std::uint32_t prompt_tokens_;
  std::vector<Choice> choices_;
};

void to_wire(const Load& load, inference::Load& out);
void to_wire(const Error& error, inference::Status& out);

[[nodiscard]] grpc::Status to_grpc(const Error& error);
[[nodiscard]] int to_http(Code code) noexcept;

}  // namespace sluice
