// ListenAddress: HOST:PORT as --listen and --metrics-listen take it, and the sockets that listen
// there.
// Thread: any (values).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice {

struct ListenAddress {
  std::string host;  // name or address; IPv6 without its brackets
  int port = 0;      // 0: any free one

  // HOST:PORT, with brackets around an IPv6 address.
  [[nodiscard]] std::string text() const;
};

// HOST:PORT, with brackets around an IPv6 address.
[[nodiscard]] std::string host_port(std::string_view host, int port);

// Only this machine reaches `host` by it: localhost, 127.0.0.0/8, ::1.
[[nodiscard]] bool is_loopback(const std::string& host) noexcept;

// Nothing if it is not HOST:PORT, PORT 0 to 65535.
[[nodiscard]] std::optional<ListenAddress> parse_host_port(std::string_view text);

// Errors name `flag`.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text,
                                                         std::string_view flag);

// A socket that listens (non-blocking, close-on-exec, the caller's) for each of the host's
// addresses; several have one port, which port 0 becomes. [::] takes IPv4, too. Nobody else can
// share the port. Errors name `flag`.
[[nodiscard]] Result<std::vector<int>> listen_at(ListenAddress& address, int backlog,
                                                 std::string_view flag);

// Listens for a moment: for servers of third parties, which say no more than that they failed, and
// are content with one of several addresses.
[[nodiscard]] Result<void> check_can_listen(const ListenAddress& address, std::string_view flag);

}  // namespace sluice
