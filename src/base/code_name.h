// code_name: gRPC's name of a code, for logs and metrics. Thread: any (pure function).
#pragma once

#include <optional>

#include "base/error.h"

namespace sluice {

// Nothing: "OK".
[[nodiscard]] constexpr const char* code_name(std::optional<Code> code) noexcept {
  if (!code) return "OK";
  switch (*code) {
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kPermissionDenied:
      return "PERMISSION_DENIED";
    case Code::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

}  // namespace sluice
