// TestHttpClient: a blocking client that sends exactly what it is told and reads what comes. Waits
// ten seconds at most for anything. Thread: its test's.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {

struct TestHttpAnswer {
  int status = 0;  // 0: the connection ended
  std::string head;
  std::string body;  // without the framing
  [[nodiscard]] bool has(std::string_view text) const {
    return head.find(text) != std::string::npos;
  }
};

class TestHttpClient {
 public:
  // `address`: 127.0.0.1:PORT. `receive_buffer`: in bytes, 0 for the system's.
  explicit TestHttpClient(const std::string& address, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval wait{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    connect(address);
  }
  ~TestHttpClient() { close(); }
  TestHttpClient(TestHttpClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        unread_(std::move(other.unread_)),
        connected_(other.connected_) {}
  TestHttpClient& operator=(TestHttpClient&&) = delete;

  [[nodiscard]] bool connected() const noexcept { return connected_; }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // what the server answered tells
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  // Up to and with `end`; less if the connection ended before.
  std::string read_through(std::string_view end) {
    std::size_t at = std::string::npos;
    while ((at = unread_.find(end)) == std::string::npos && receive()) {
    }
    return take(at == std::string::npos ? unread_.size() : at + end.size());
  }

  std::string read_to_end() {
    while (receive()) {
    }
    return take(unread_.size());
  }

  TestHttpAnswer answer(bool head_only = false) {
    TestHttpAnswer answer;
    answer.head = read_through("\r\n\r\n");
    if (answer.head.size() < 12) return answer;
    answer.status = std::atoi(answer.head.c_str() + 9);
    const auto length = answer.head.find("Content-Length: ");
    if (head_only || answer.status < 200 || answer.status == 204) return answer;
    if (length != std::string::npos) {
      const auto size = std::strtoull(answer.head.c_str() + length + 16, nullptr, 10);
      while (unread_.size() < size && receive()) {
      }
      answer.body = take(size);
    } else if (answer.has("Transfer-Encoding: chunked")) {
      answer.body = chunks();
    } else {
      answer.body = read_to_end();
    }
    return answer;
  }

  // Whether the server closed the connection, with nothing more to read.
  bool ended() { return unread_.empty() && !receive() && !timed_out_; }

  void shut_down_sending() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }

 private:
  void connect(const std::string& address) {
    const auto colon = address.rfind(':');
    sockaddr_in server{};
    server.sin_family = AF_INET;
    server.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
    ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &server.sin_addr);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0;
  }

  bool receive() {
    char bytes[16384];
    const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
    timed_out_ = got < 0 && errno == EAGAIN;
    EXPECT_FALSE(timed_out_) << "nothing came";
    if (got <= 0) return false;
    unread_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  std::string take(std::size_t bytes) {
    std::string taken = unread_.substr(0, bytes);
    unread_.erase(0, bytes);
    return taken;
  }

  std::string chunks() {
    std::string body;
    for (;;) {
      const std::string header = read_through("\r\n");
      if (header.empty()) return body + "<cut>";
      const auto size = std::strtoull(header.c_str(), nullptr, 16);
      while (unread_.size() < size + 2 && receive()) {
      }
      body += take(size);
      take(2);
      if (size == 0) return body;
    }
  }

  int fd_;
  std::string unread_;
  bool timed_out_ = false;
  bool connected_ = false;
};

}  // namespace sluice
