#include "gateway/replica_spec.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/concat.h"
#include "base/listen_address.h"

namespace sluice {
namespace {

bool is_literal(const std::string& host) noexcept {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

Result<ReplicaSpec> parse_address(std::string_view text) {
  auto address = parse_host_port(text);
  if (!address || address->port == 0) {
    return invalid(concat("--replica is HOST:PORT[;LABEL=VALUE...], with brackets around an IPv6 ",
                          "address and PORT 1 to 65535, not \"", text, '"'));
  }
  ReplicaSpec spec;
  spec.host = std::move(address->host);
  spec.port = address->port;
  return spec;
}

}  // namespace

std::string ReplicaSpec::address() const { return host_port(host, port); }

std::string ReplicaSpec::name() const {
  const std::string_view given = label("name");
  return given.empty() ? address() : std::string(given);
}

std::string_view ReplicaSpec::label(std::string_view key) const noexcept {
  const auto found = std::find_if(labels.begin(), labels.end(),
                                  [key](const auto& label) { return label.first == key; });
  return found == labels.end() ? std::string_view() : std::string_view(found->second);
}

bool ReplicaSpec::needs_resolving() const noexcept {
  return host != "localhost" && !is_literal(host);
}

Result<ReplicaSpec> parse_replica(std::string_view text) {
  auto spec = parse_address(text.substr(0, text.find(';')));
  if (!spec) return spec;
  while (true) {
    const auto semicolon = text.find(';');
    if (semicolon == std::string_view::npos) return spec;
    text.remove_prefix(semicolon + 1);
    const std::string_view label = text.substr(0, text.find(';'));
    const auto equals = label.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == label.size())
      return invalid(concat("--replica: a label is LABEL=VALUE, not \"", label, '"'));
    spec->labels.emplace_back(label.substr(0, equals), label.substr(equals + 1));
  }
}

Result<std::vector<std::string>> resolve(const ReplicaSpec& spec) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(spec.host.c_str(), nullptr, &hints, &found);
  if (failure != 0)
    return fail(Code::kUnavailable,
                concat("can't resolve ", spec.host, " (--replica): ", ::gai_strerror(failure)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> host{};
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, host.data(), host.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0)
      addresses.push_back(host_port(host.data(), spec.port));
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

}  // namespace sluice
