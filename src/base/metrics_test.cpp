#include "base/metrics.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

TEST(Metrics, TheSameNameAndLabelsAreTheSameSeries) {
  Metrics metrics;
  metrics.counter("c_total", "help", {{"how", "a"}}).add(2);
  metrics.counter("c_total", "help", {{"how", "a"}}).add();
  metrics.counter("c_total", "help", {{"how", "b"}}).add();
  const std::string text = metrics.text();
  EXPECT_NE(text.find("c_total{how=\"a\"} 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("c_total{how=\"b\"} 1\n"), std::string::npos) << text;
}

TEST(Metrics, AHistogramPutsValuesInTheirBuckets) {
  Metrics metrics;
  auto histogram = metrics.histogram("h_seconds", "help", {0.1, 1});
  histogram.observe(0.5);
  const std::string text = metrics.text();
  EXPECT_NE(text.find("h_seconds_bucket{le=\"0.1\"} 0"), std::string::npos) << text;
  EXPECT_NE(text.find("h_seconds_bucket{le=\"1\"} 1"), std::string::npos) << text;
}

TEST(Metrics, ServesOnAFreePort) {
  Metrics metrics;
  const auto port = metrics.serve("127.0.0.1:0");
  ASSERT_TRUE(port);
  EXPECT_GT(*port, 0);
}

class Connection {
 public:
  explicit Connection(int port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Connection() { ::close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send(std::string_view bytes) const {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // What comes first; nothing if nothing does.
  std::string receive() const {
    std::string bytes(4096, '\0');
    bytes.resize(
        static_cast<std::size_t>(std::max<ssize_t>(::recv(fd_, bytes.data(), bytes.size(), 0), 0)));
    return bytes;
  }

 private:
  int fd_;
};

TEST(Metrics, AScrapeIsAnsweredBesideManyHalfSentRequests) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "civetweb's threads write the dates of their answers into one buffer";
#endif
  Metrics metrics;
  const auto port = metrics.serve("127.0.0.1:0");
  ASSERT_TRUE(port);
  std::vector<std::unique_ptr<Connection>> half_sent;
  for (int i = 0; i < 200; ++i) {
    half_sent.push_back(std::make_unique<Connection>(*port));
    half_sent.back()->send("GET /metr");
  }
  const Connection scrape(*port);
  scrape.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(scrape.receive().starts_with("HTTP/1.1 200")) << "not within ten seconds";
}

TEST(Metrics, AnAddressInUseIsNamedWithItsFlag) {
  Metrics first;
  const auto port = first.serve("127.0.0.1:0");
  ASSERT_TRUE(port);
  Metrics second;
  const std::string address = "127.0.0.1:" + std::to_string(*port);
  const auto refused = second.serve(address);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(address), std::string::npos);
  EXPECT_NE(refused.error().message.find("--metrics-listen"), std::string::npos);
}

}  // namespace
}  // namespace sluice
