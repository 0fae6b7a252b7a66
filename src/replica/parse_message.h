// parse_message: a call's bytes to its message, once the caller is known. gRPC would parse before
// anything is asked, and answer what it can't parse with an empty UNIMPLEMENTED.
// Bounded by --max-message-bytes and --max-message-values: a field of two bytes may become an
// object of a hundred and more, so a message above kFreeMessageBytes is counted before it is
// parsed.
// Thread: any (pure functions).
#pragma once

#include <cstddef>

#include "base/error.h"
#include "contract/limits.h"

namespace google::protobuf {
class Message;
}
namespace grpc {
class ByteBuffer;
}

namespace sluice {

// What is no longer than this may become no more than a few megabytes, whatever it holds.
inline constexpr std::size_t kFreeMessageBytes = 64 << 10;

// Overwrites `out`, which after an error holds anything. Errors: kResourceExhausted (too many
// bytes), kInvalidArgument (too many values; bytes that are no such message; a string that is not
// UTF-8). They name limit and flag, the type, or the field.
[[nodiscard]] Result<void> parse_message(const grpc::ByteBuffer& bytes, const Limits& limits,
                                         google::protobuf::Message& out);

// The same for services that anybody may call: no more than kFreeMessageBytes.
[[nodiscard]] Result<void> parse_small_message(const grpc::ByteBuffer& bytes,
                                               google::protobuf::Message& out);

}  // namespace sluice
