// Wire, as a client of the contract needs it (a gateway towards its replicas): our requests to
// protobuf, and what a replica says back to our types. A peer's mistakes are errors here, never a
// crash. Bounded by the messages themselves. Thread: any; a ResponseDecoder: one thread at a time.
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

// As Message.role in the contract has it.
[[nodiscard]] const char* role_name(Role role) noexcept;

// Both append to an empty `out`. Errors: kInvalidArgument (text that is not UTF-8 in a field that
// protobuf holds as text: the replica could not read the whole message, and other requests may
// be in it).
[[nodiscard]] Result<void> to_wire(const GenerationRequest& request,
                                   inference::GenerateRequest& out);
[[nodiscard]] Result<void> to_wire(const PromptSource& prompt, inference::CountTokensRequest& out);

// Takes the messages of one request's stream; tells from their counts what each of them stands for.
class ResponseDecoder {
 public:
  // As many as the request asked for: the client's number, held against no limit yet.
  explicit ResponseDecoder(std::uint32_t choices) : choices_(choices) {}

  // Takes the response's bytes. The error (kInternal) says what of the contract the replica broke.
  [[nodiscard]] Result<ReceivedDelta> decode(inference::GenerateResponse& response);

 private:
  std::uint32_t choices_;
  std::vector<std::uint32_t> tokens_;  // of each choice that has come, so far
};

// How a request ended on the step stream.
[[nodiscard]] Result<void> from_wire(const inference::Status& status);
[[nodiscard]] Load from_wire(const inference::Load& load);
// How a call ended. Codes that we don't use come as the nearest that we do.
[[nodiscard]] Result<void> from_grpc(const grpc::Status& status);

}  // namespace sluice
