// KeyLimits: what the holder of one key may use, as the fields after the key's hash in its file say
// it: rpm=60 tpm=100000 streams=8 models=a,b trusted. Each is optional. The gateway holds callers
// to all of them (gateway/rate_limits.h); a replica, whose callers are gateways, to the models
// alone. Thread: any (values).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice {

inline constexpr std::uint32_t kMaxPerMinute = 1'000'000'000;

struct KeyLimits {
  std::uint32_t requests_per_minute = 0;  // 0: no limit; in the next two as well
  std::uint32_t tokens_per_minute = 0;    // of prompts and answers together
  std::uint32_t streams = 0;              // answers under way at once, n choices being n
  std::vector<std::string> models;        // the only ones it may ask for; empty: all
  bool trusted = false;                   // may name the machine that shall take a request

  bool operator==(const KeyLimits&) const = default;
};

// Reads one field. Errors: kInvalidArgument; they name the field and hold none of its text.
[[nodiscard]] Result<void> parse_key_limit(std::string_view field, KeyLimits& limits);

// The fields, each with a space before it; parse_key_limit's inverse.
[[nodiscard]] std::string to_text(const KeyLimits& limits);

[[nodiscard]] bool allows_model(const KeyLimits& limits, std::string_view model) noexcept;

}  // namespace sluice
