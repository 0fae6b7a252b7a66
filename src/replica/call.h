// What every call begins and ends with: the caller's key, request id, priority and deadline from
// its metadata, the bound on a message, and the status with its trailing metadata. Thread: any, but
// a call's metadata is only touched by whoever may send on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "contract/limits.h"

namespace grpc {
class CallbackServerContext;
class Status;
}  // namespace grpc

namespace sluice {

class KeyRing;
struct ApiKey;
struct GenerationRequest;

// Whose key the caller has shown; never null, where no key is asked for nobody's in particular.
// kUnauthenticated, with the same text for a missing and an unknown key.
[[nodiscard]] Result<std::shared_ptr<const ApiKey>> caller_of(
    const grpc::CallbackServerContext& call, const KeyRing& keys);

// kPermissionDenied if the key is for other models. Of a key's limits these alone are held here.
[[nodiscard]] Result<void> may_use(const ApiKey& caller, std::string_view model);

// Callers share neither prefixes nor a turn at the slots: puts the key's name before the cache
// salt, as a gateway has done with its callers' before it calls with a trusted key.
void keep_apart(const ApiKey& caller, GenerationRequest& request);

// caller_of, for what every caller may do.
[[nodiscard]] Result<void> authenticate(const grpc::CallbackServerContext& call,
                                        const KeyRing& keys);

// Whether the caller may end the server: holds a trusted key; where no key is asked for, is on this
// machine or has shown a certificate. kUnauthenticated, kPermissionDenied.
[[nodiscard]] Result<void> authenticate_operator(const grpc::CallbackServerContext& call,
                                                 const KeyRing& keys);

// Metadata `x-request-id`, if it is there and is 1 to 128 of A-Z a-z 0-9 . _ -.
[[nodiscard]] std::optional<std::string> given_request_id(const grpc::CallbackServerContext& call);

// Puts the given request id, or else a new one, into the trailing metadata.
void end_with_request_id(grpc::CallbackServerContext& call);

// Metadata `openengine-priority`, if there. kInvalidArgument if it is no integer; its range is
// validate()'s business.
[[nodiscard]] Result<std::optional<std::int32_t>> priority_of(
    const grpc::CallbackServerContext& call);

// The call's deadline on our clock; kForever if it has none.
[[nodiscard]] TimePoint deadline_of(const grpc::CallbackServerContext& call, const Clock& clock);

// kResourceExhausted if a request of `bytes` is over Limits::max_message_bytes.
[[nodiscard]] Result<void> check_message_bytes(std::size_t bytes, const Limits& limits);

// The status to finish a call with. Where the error knows when to try again, this goes into the
// trailing metadata: `grpc-retry-pushback-ms` and `retry-after-ms`.
[[nodiscard]] grpc::Status failed(grpc::CallbackServerContext& call, const Error& error);

// What a call ends with that its client, or its deadline, has cancelled.
[[nodiscard]] Error cancelled(TimePoint deadline, const Clock& clock);

// What a call is refused with when its Gate is closed.
[[nodiscard]] Error draining();

}  // namespace sluice
