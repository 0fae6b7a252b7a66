// CHECK: for what is impossible unless Sluice itself is wrong. It prints the condition and the
// reason and aborts. Never for what a client, a file or a peer can cause: that is a Result. Thread:
// any.
#pragma once

namespace sluice {

[[noreturn]] void check_failed(const char* condition, const char* reason, const char* file,
                               int line) noexcept;

}  // namespace sluice

#define CHECK(condition, reason) \
  ((condition) ? void(0) : ::sluice::check_failed(#condition, reason, __FILE__, __LINE__))
