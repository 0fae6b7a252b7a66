// ListenAddress: HOST:PORT as --listen and --metrics-listen take it, and whether a server can
// listen there.
// Thread: any (values).
#pragma once

#include <optional>
#include <string>
#include <string_view>

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

// Binds each of the host's addresses for a moment. gRPC says no more than that it failed, and is
// content with one of several.
[[nodiscard]] Result<void> check_can_listen(const ListenAddress& address, std::string_view flag);

}  // namespace sluice
