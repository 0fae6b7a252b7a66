#include "replica/h2_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace sluice {
namespace {

constexpr std::string_view kPrefaceAndEmptySettings{
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33};
constexpr std::uint8_t kSettings = 4;
constexpr std::uint8_t kPing = 6;
constexpr std::uint8_t kGoAway = 7;
constexpr std::uint8_t kAck = 1;
constexpr std::size_t kMaxPayload = 16'384;  // as our empty SETTINGS leave it

std::uint32_t big_endian(std::string_view bytes) noexcept {
  std::uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

int connect_loopback(int port) noexcept {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{H2Probe::kPatience.count(), 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return fd;  // a failure shows at the first read
}

}  // namespace

struct H2Probe::Connection {
  int fd = -1;
  SSL_CTX* context = nullptr;
  SSL* tls = nullptr;

  ~Connection() {
    SSL_free(tls);
    SSL_CTX_free(context);
    if (fd >= 0) ::close(fd);
    ERR_clear_error();
  }

  void start_tls() {
    constexpr std::array<unsigned char, 3> kH2{2, 'h', '2'};
    context = SSL_CTX_new(TLS_client_method());
    tls = SSL_new(context);
    SSL_set_alpn_protos(tls, kH2.data(), kH2.size());
    SSL_set_fd(tls, fd);
    SSL_connect(tls);  // a failure shows at the first read
  }

  void write(std::string_view bytes) {
    if (tls != nullptr) {
      SSL_write(tls, bytes.data(), static_cast<int>(bytes.size()));
    } else {
      [[maybe_unused]] const auto sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
  }

  bool read(std::string& bytes) {
    std::size_t filled = 0;
    while (filled < bytes.size()) {
      const auto wanted = bytes.size() - filled;
      const auto got = tls != nullptr
                           ? SSL_read(tls, bytes.data() + filled, static_cast<int>(wanted))
                           : ::recv(fd, bytes.data() + filled, wanted, 0);
      if (got <= 0) return false;
      filled += static_cast<std::size_t>(got);
    }
    return true;
  }
};

H2Probe::H2Probe(int port, Security security) : connection_(std::make_unique<Connection>()) {
  connection_->fd = connect_loopback(port);
  if (security == Security::kTls) connection_->start_tls();
  connection_->write(kPrefaceAndEmptySettings);
}

H2Probe::~H2Probe() = default;

bool H2Probe::greeted() {
  constexpr std::size_t kEntry = 6;
  constexpr std::uint32_t kMaxConcurrentStreams = 3;
  const auto frame = read_frame();
  if (!frame || frame->type != kSettings || frame->flags != 0) return false;
  const std::string_view entries = frame->payload;
  for (std::size_t at = 0; at + kEntry <= entries.size(); at += kEntry) {
    if (big_endian(entries.substr(at, 2)) == kMaxConcurrentStreams) {
      max_concurrent_streams_ = big_endian(entries.substr(at + 2, 4));
    }
  }
  return true;
}

std::string H2Probe::server_certificate() const {
  X509* certificate =
      connection_->tls == nullptr ? nullptr : SSL_get1_peer_certificate(connection_->tls);
  if (certificate == nullptr) return {};
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio, &text);
  std::string pem(text, static_cast<std::size_t>(size));
  BIO_free(bio);
  X509_free(certificate);
  return pem;
}

H2Probe::Pings H2Probe::ping(int count) {
  constexpr std::string_view kPingFrame{"\0\0\x08\x06\0\0\0\0\0sluice..", 17};
  std::string pings;
  for (int i = 0; i < count; ++i) pings += kPingFrame;
  connection_->write(pings);  // a failure shows at the first read
  for (int answered = 0; answered < count;) {
    const auto frame = read_frame();
    if (!frame) return Pings::kLost;
    if (frame->type == kPing && frame->flags == kAck) ++answered;
    if (frame->type == kGoAway) {
      return frame->payload.find("too_many_pings") != std::string::npos ? Pings::kTooMany
                                                                        : Pings::kLost;
    }
  }
  return Pings::kAnswered;
}

std::optional<H2Probe::Frame> H2Probe::read_frame() {
  std::string header(9, '\0');
  if (!connection_->read(header)) return std::nullopt;
  const std::size_t size = big_endian(std::string_view(header).substr(0, 3));
  if (size > kMaxPayload) return std::nullopt;  // not HTTP/2
  Frame frame{static_cast<std::uint8_t>(header[3]), static_cast<std::uint8_t>(header[4]),
              std::string(size, '\0')};
  if (!connection_->read(frame.payload)) return std::nullopt;
  return frame;
}

}  // namespace sluice
