// Error and Result: how everything that may fail by the outside world's doing says so.
// Codes carry gRPC's numbers; contract/wire maps them to gRPC and HTTP. A message may be read by a
// client: it names the field, flag or file at fault and holds no part of a prompt, an answer or a
// key. Thread: any (values).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace sluice {

// The numbers of google.rpc.Code.
enum class Code {
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

struct Error {
  Code code = Code::kInternal;
  std::string message;
  // When it is worth trying again, where the refusing bound knows.
  std::optional<std::chrono::milliseconds> retry_after = std::nullopt;
};

template <typename T>
using Result = tl::expected<T, Error>;

// `return fail(Code::kNotFound, "model …")` from any function that returns a Result.
[[nodiscard]] inline tl::unexpected<Error> fail(Code code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

[[nodiscard]] inline tl::unexpected<Error> invalid(std::string message) {
  return fail(Code::kInvalidArgument, std::move(message));
}

}  // namespace sluice
