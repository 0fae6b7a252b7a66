#include "replica/call.h"

#include <grpc/support/time.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "access/keys.h"
#include "access/request_id.h"
#include "base/concat.h"
#include "base/listen_address.h"
#include "contract/generation.h"
#include "contract/wire.h"

namespace sluice {
namespace {

std::optional<std::string_view> metadata(const grpc::CallbackServerContext& call, const char* key) {
  const auto& all = call.client_metadata();
  const auto found = all.find(key);
  if (found == all.end()) return std::nullopt;
  return std::string_view(found->second.data(), found->second.size());
}

// `peer` as gRPC has it: "ipv4:127.0.0.1:5", "ipv6:%5B::1%5D:5".
bool is_of_this_machine(std::string_view peer) {
  if (peer.starts_with("ipv6:%5B::1%5D:")) return true;
  constexpr std::string_view kV4 = "ipv4:";
  if (!peer.starts_with(kV4)) return false;
  const auto address = parse_host_port(peer.substr(kV4.size()));
  return address && is_loopback(address->host);
}

}  // namespace

Result<std::shared_ptr<const ApiKey>> caller_of(const grpc::CallbackServerContext& call,
                                                const KeyRing& keys) {
  if (!keys.required()) return keys.find({});
  const auto authorization = metadata(call, "authorization");
  if (authorization) {
    if (auto key = keys.find(bearer_in(*authorization))) return key;
  }
  return fail(Code::kUnauthenticated,
              "no valid key: the metadata `authorization: Bearer KEY` must hold one");
}

Result<void> may_use(const ApiKey& caller, std::string_view model) {
  if (allows_model(caller.limits, model)) return {};
  return fail(Code::kPermissionDenied, "this key may not use that model");
}

void keep_apart(const ApiKey& caller, GenerationRequest& request) {
  if (!caller.name.empty() && !caller.limits.trusted)
    request.cache.salt = concat(caller.name, '\n', request.cache.salt);
}

Result<void> authenticate(const grpc::CallbackServerContext& call, const KeyRing& keys) {
  if (auto caller = caller_of(call, keys); !caller)
    return tl::unexpected(std::move(caller.error()));
  return {};
}

Result<void> authenticate_operator(const grpc::CallbackServerContext& call, const KeyRing& keys) {
  if (keys.required()) {
    const auto key = caller_of(call, keys);
    if (!key) return tl::unexpected(key.error());
    if ((*key)->limits.trusted) return {};
    return fail(Code::kPermissionDenied,
                "only a trusted key may do that (sluice key add --trusted)");
  }
  if (call.auth_context()->IsPeerAuthenticated() || is_of_this_machine(call.peer())) return {};
  return fail(
      Code::kPermissionDenied,
      "no key is asked for here (--api-keys), so only a client on this machine, or one that "
      "shows a certificate (--tls-client-ca), may do that");
}

std::optional<std::string> given_request_id(const grpc::CallbackServerContext& call) {
  const auto given = metadata(call, "x-request-id");
  if (!given || !is_request_id(*given)) return std::nullopt;
  return std::string(*given);
}

void end_with_request_id(grpc::CallbackServerContext& call) {
  const auto given = given_request_id(call);
  call.AddTrailingMetadata("x-request-id", given ? *given : new_request_id());
}

Result<std::optional<std::int32_t>> priority_of(const grpc::CallbackServerContext& call) {
  const auto text = metadata(call, "openengine-priority");
  if (!text) return std::nullopt;
  std::int32_t priority = 0;
  const char* const end = text->data() + text->size();
  const auto [parsed, error] = std::from_chars(text->data(), end, priority);
  if (error != std::errc() || parsed != end)
    return invalid("the metadata openengine-priority must be an integer, -100 to 100");
  return priority;
}

TimePoint deadline_of(const grpc::CallbackServerContext& call, const Clock& clock) {
  constexpr std::int64_t kYear = std::int64_t{365} * 24 * 3600;  // as good as for ever
  // Not call.deadline(): the longest grpc-timeout is more than its nanoseconds hold.
  const gpr_timespec deadline = call.raw_deadline();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (left.tv_sec > kYear) return kForever;
  return clock.now() + std::chrono::seconds(std::max(left.tv_sec, -kYear)) +
         std::chrono::nanoseconds(left.tv_nsec);
}

Result<void> check_message_bytes(std::size_t bytes, const Limits& limits) {
  if (bytes <= limits.max_message_bytes) return {};
  return fail(Code::kResourceExhausted,
              concat("the request has ", bytes, " bytes, and --max-message-bytes is ",
                     limits.max_message_bytes));
}

grpc::Status failed(grpc::CallbackServerContext& call, const Error& error) {
  if (error.retry_after) {
    const std::string wait = std::to_string(error.retry_after->count());
    call.AddTrailingMetadata("grpc-retry-pushback-ms", wait);
    call.AddTrailingMetadata("retry-after-ms", wait);
  }
  return to_grpc(error);
}

Error cancelled(TimePoint deadline, const Clock& clock) {
  if (clock.now() >= deadline) return {Code::kDeadlineExceeded, "the call's deadline passed"};
  return {Code::kCancelled, "the client cancelled the call"};
}

Error draining() {
  return {Code::kUnavailable, "the server is shutting down and takes no new requests"};
}

}  // namespace sluice
