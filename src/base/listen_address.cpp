#include "base/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/concat.h"

namespace sluice {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// A socket that listens, or why not as a negative errno.
int listen_on(const addrinfo& address, int backlog) noexcept {
  const int fd =
      ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (fd < 0) return -errno;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6) {
    const int off = 0;
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(fd, address.ai_addr, address.ai_addrlen) == 0 && ::listen(fd, backlog) == 0) return fd;
  const int failure = errno;
  ::close(fd);
  return -failure;
}

int port_of(int fd) noexcept {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size);
  return name.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6&>(name).sin6_port)
                                    : ntohs(reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

void set_port(addrinfo& address, int port) noexcept {
  const in_port_t in_order = htons(static_cast<std::uint16_t>(port));
  if (address.ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address.ai_addr)->sin6_port = in_order;
  } else {
    reinterpret_cast<sockaddr_in*>(address.ai_addr)->sin_port = in_order;
  }
}

// Sockets for all addresses and `port`, which is 0 for any one; or none, and why.
std::vector<int> listen_on_all(addrinfo* addresses, int& port, int backlog, int& why) noexcept {
  std::vector<int> sockets;
  for (addrinfo* one = addresses; one != nullptr; one = one->ai_next) {
    set_port(*one, port);
    const int fd = listen_on(*one, backlog);
    if (fd >= 0) {
      sockets.push_back(fd);
      port = port_of(fd);
      continue;
    }
    why = -fd;
    if (why == EADDRNOTAVAIL || why == EAFNOSUPPORT) continue;  // say ::1 where there is no IPv6
    for (const int open : sockets) ::close(open);
    return {};
  }
  return sockets;
}

}  // namespace

std::string host_port(std::string_view host, int port) {
  const bool v6 = host.find(':') != std::string_view::npos;
  return v6 ? concat('[', host, "]:", port) : concat(host, ':', port);
}

std::string ListenAddress::text() const { return host_port(host, port); }

bool is_loopback(const std::string& host) noexcept {
  if (host == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

std::optional<ListenAddress> parse_host_port(std::string_view text) {
  constexpr int kMaxPort = 65'535;
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  if (!brackets && host.find(':') != std::string_view::npos) return std::nullopt;

  ListenAddress address{std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  const bool whole = error == std::errc{} && end == port.data() + port.size();
  if (!whole || address.port < 0 || address.port > kMaxPort) return std::nullopt;
  return address;
}

Result<ListenAddress> parse_listen_address(std::string_view text, std::string_view flag) {
  if (auto address = parse_host_port(text)) return std::move(*address);
  return invalid(
      concat(flag, " is HOST:PORT (with brackets around an IPv6 address), PORT 0 to 65535, not \"",
             text, '"'));
}

Result<std::vector<int>> listen_at(ListenAddress& address, int backlog, std::string_view flag) {
  constexpr int kTries = 16;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failure =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (failure != 0) {
    return invalid(
        concat("can't listen on ", address.text(), " (", flag, "): ", ::gai_strerror(failure)));
  }
  const Addresses addresses(found, &::freeaddrinfo);
  int why = 0;
  // A port that is free at one address may be taken at another.
  for (int tries = address.port == 0 ? kTries : 1; tries > 0; --tries) {
    int port = address.port;
    std::vector<int> sockets = listen_on_all(addresses.get(), port, backlog, why);
    if (sockets.empty()) continue;
    address.port = port;
    return sockets;
  }
  return fail(Code::kUnavailable,
              concat("can't listen on ", address.text(), " (", flag, "): ", std::strerror(why)));
}

Result<void> check_can_listen(const ListenAddress& address, std::string_view flag) {
  ListenAddress tried = address;
  const auto sockets = listen_at(tried, 1, flag);
  if (!sockets) return tl::unexpected(sockets.error());
  for (const int fd : *sockets) ::close(fd);
  return {};
}

}  // namespace sluice
