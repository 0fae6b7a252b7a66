#include "gateway/replica_spec.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "base/concat.h"

namespace sluice {
namespace {

constexpr int kMaxPort = 65'535;

std::string host_port(std::string_view host, int port) {
  const bool v6 = host.find(':') != std::string_view::npos;
  return v6 ? concat('[', host, "]:", port) : concat(host, ':', port);
}

bool is_literal(const std::string& host) noexcept {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

Result<ReplicaSpec> parse_address(std::string_view text) {
  const auto malformed = [&] {
    return invalid(concat("--replica is HOST:PORT[;LABEL=VALUE...], with brackets around an IPv6 ",
                          "address and PORT 1 to 65535, not \"", text, '"'));
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return malformed();
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  if (!brackets && host.find(':') != std::string_view::npos) return malformed();
  ReplicaSpec spec;
  spec.host = host;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), spec.port);
  if (error != std::errc() || end != port.data() + port.size()) return malformed();
  if (spec.port < 1 || spec.port > kMaxPort) return malformed();
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
