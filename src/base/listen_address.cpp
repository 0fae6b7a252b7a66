#include "base/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/concat.h"

namespace sluice {
namespace {

// 0, or why not.
int try_bind(const addrinfo& address) noexcept {
  const int fd = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6) {
    const int off = 0;
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  const bool bound = ::bind(fd, address.ai_addr, address.ai_addrlen) == 0 && ::listen(fd, 1) == 0;
  const int failure = bound ? 0 : errno;
  ::close(fd);
  return failure;
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

Result<void> check_can_listen(const ListenAddress& address, std::string_view flag) {
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
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  int unavailable = 0;
  bool any = false;
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    const int why = try_bind(*one);
    if (why == 0) {
      any = true;
    } else if (why == EADDRNOTAVAIL || why == EAFNOSUPPORT) {  // say ::1 where there is no IPv6
      unavailable = why;
    } else {
      return fail(Code::kUnavailable, concat("can't listen on ", address.text(), " (", flag,
                                             "): ", std::strerror(why)));
    }
  }
  if (any) return {};
  return fail(Code::kUnavailable, concat("can't listen on ", address.text(), " (", flag,
                                         "): ", std::strerror(unavailable)));
}

}  // namespace sluice
