// ReplicaSpec: one --replica as it was given, HOST:PORT[;LABEL=VALUE…], and the addresses that its
// host stands for. Labels: name (how it is called in x-served-by and directives), retain (none: it
// keeps nothing), quantization, and any others, by whose values clients can choose. Thread: any;
// resolve() waits for the system's resolver.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice {

struct ReplicaSpec {
  std::string host;  // name or address; IPv6 without its brackets
  int port = 0;
  std::vector<std::pair<std::string, std::string>> labels;

  // HOST:PORT, with brackets around an IPv6 address.
  [[nodiscard]] std::string address() const;
  // The label `name`, or else the address.
  [[nodiscard]] std::string name() const;
  // The label's value, or "".
  [[nodiscard]] std::string_view label(std::string_view key) const noexcept;
  // Whether the host's addresses have to be asked for, and may change. "localhost" is one machine,
  // however many addresses it has.
  [[nodiscard]] bool needs_resolving() const noexcept;
};

// Errors: kInvalidArgument, naming --replica.
[[nodiscard]] Result<ReplicaSpec> parse_replica(std::string_view text);

// Each as HOST:PORT, sorted. Errors: kUnavailable.
[[nodiscard]] Result<std::vector<std::string>> resolve(const ReplicaSpec& spec);

}  // namespace sluice
