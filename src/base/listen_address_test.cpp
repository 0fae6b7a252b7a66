#include "base/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace sluice {
namespace {

using testing::HasSubstr;

TEST(ListenAddress, TakesNamesAndBothKindsOfAddress) {
  for (const char* text : {"127.0.0.1:50051", "localhost:0", "[::1]:65535", "0.0.0.0:1"}) {
    const auto address = parse_listen_address(text, "--listen");
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->text(), text);
  }
}

TEST(ListenAddress, AFaultShowsTheTextAndTheFlag) {
  for (const char* text :
       {"", ":", "nonsense", "127.0.0.1", "127.0.0.1:", ":50051", "127.0.0.1:65536", "127.0.0.1:-1",
        "127.0.0.1:80x", "::1:50051", "127.0.0.1:+1"}) {
    const auto address = parse_listen_address(text, "--listen");
    ASSERT_FALSE(address) << text;
    EXPECT_THAT(address.error().message, HasSubstr("--listen"));
    EXPECT_THAT(address.error().message, HasSubstr(text));
  }
}

TEST(ListenAddress, APortInUseIsNamedWithItsFlagAndReason) {
  const int taken = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(taken, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::listen(taken, 1), 0);
  socklen_t size = sizeof name;
  ::getsockname(taken, reinterpret_cast<sockaddr*>(&name), &size);
  const ListenAddress address{"127.0.0.1", ntohs(name.sin_port)};

  const auto can = check_can_listen(address, "--listen");
  ASSERT_FALSE(can);
  EXPECT_THAT(can.error().message, HasSubstr(address.text()));
  EXPECT_THAT(can.error().message, HasSubstr("--listen"));
  EXPECT_THAT(can.error().message, HasSubstr("in use"));
  ::close(taken);
  EXPECT_TRUE(check_can_listen(address, "--listen"));
}

TEST(ListenAddress, EachAddressOfANameListensOnOnePort) {
  ListenAddress address{"localhost", 0};
  const auto sockets = listen_at(address, 1, "--listen");
  ASSERT_TRUE(sockets) << sockets.error().message;
  EXPECT_GT(address.port, 0);
  for (const int fd : *sockets) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
    const auto port = name.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(name).sin_port
                                                : reinterpret_cast<sockaddr_in6&>(name).sin6_port;
    EXPECT_EQ(ntohs(port), address.port);
  }
  ListenAddress again = address;
  EXPECT_FALSE(listen_at(again, 1, "--listen")) << "two servers would share the port";
  for (const int fd : *sockets) ::close(fd);
}

TEST(ListenAddress, AnAddressOfAnotherMachineIsRefused) {
  EXPECT_FALSE(check_can_listen({"192.0.2.1", 0}, "--listen"));  // RFC 5737: nobody's
}

}  // namespace
}  // namespace sluice
