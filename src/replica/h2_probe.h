// H2Probe: the smallest HTTP/2 client there is, for the self-proof: it shows what a server's
// options do to a client, which gRPC's own client hides. Over TCP or TLS, to the loopback address.
// Bounded: one connection, kPatience for each read.
// Thread: one; it blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sluice {

class H2Probe {
 public:
  static constexpr std::chrono::seconds kPatience{5};
  enum class Security { kPlain, kTls };

  // Connects and sends the client's preface.
  H2Probe(int port, Security security);
  ~H2Probe();
  H2Probe(const H2Probe&) = delete;
  H2Probe& operator=(const H2Probe&) = delete;

  // Waits for the server's SETTINGS; false: it closed, or spoke something else.
  [[nodiscard]] bool greeted();

  // Value of SETTINGS_MAX_CONCURRENT_STREAMS, once greeted.
  [[nodiscard]] std::optional<std::uint32_t> max_concurrent_streams() const noexcept {
    return max_concurrent_streams_;
  }

  // PEM of the certificate that the server showed.
  [[nodiscard]] std::string server_certificate() const;

  enum class Pings { kAnswered, kTooMany, kLost };
  // Sends `count` pings in one packet and waits until all are answered, or the server says
  // "too_many_pings" and goes away.
  [[nodiscard]] Pings ping(int count);

 private:
  struct Connection;
  struct Frame {
    std::uint8_t type = 0;
    std::uint8_t flags = 0;
    std::string payload;
  };
  [[nodiscard]] std::optional<Frame> read_frame();

  std::unique_ptr<Connection> connection_;
  std::optional<std::uint32_t> max_concurrent_streams_;
};

}  // namespace sluice
