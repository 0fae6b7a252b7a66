// The floor below any gateway: one thread, and one send() of a chunk as large as one of ours for
// each token, with no request looked at and nothing made. Usage: bare_writer PORT TOKENS STEP_MS
#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace {

constexpr std::size_t kChunkBytes = 0xc8;

std::string chunk() { return "c8\r\n" + std::string(kChunkBytes, 'x') + "\r\n"; }

int listen_on(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return -1;
  return ::listen(fd, SOMAXCONN) == 0 ? fd : -1;
}

int timer_every(std::int64_t ms) {
  const int fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  const timespec step{ms / 1000, ms % 1000 * 1'000'000};
  const itimerspec period{step, step};
  ::timerfd_settime(fd, 0, &period, nullptr);
  return fd;
}

void watch(int poll, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  ::epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
}

bool put(int fd, const std::string& bytes) {
  return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fputs("usage: bare_writer PORT TOKENS STEP_MS\n", stderr), 1;
  const int tokens = std::atoi(argv[2]);
  const int listener = listen_on(static_cast<std::uint16_t>(std::atoi(argv[1])));
  if (listener < 0) return std::fputs("bare_writer: the port is in use\n", stderr), 1;
  const int timer = timer_every(std::atoi(argv[3]));
  const int poll = ::epoll_create1(0);
  watch(poll, listener);
  watch(poll, timer);
  const std::string head =
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
  const std::string one = chunk();
  const std::string last = one + "0\r\n\r\n";
  std::map<int, int> left;  // tokens, by connection
  for (std::array<epoll_event, 256> events{};;) {
    const int count = ::epoll_wait(poll, events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      std::array<char, 4096> request{};
      if (fd == listener) {
        watch(poll, ::accept(listener, nullptr, nullptr));
      } else if (fd == timer) {
        static_cast<void>(::read(timer, request.data(), sizeof(std::uint64_t)));
        for (auto& [stream, owed] : left) {
          if (owed > 0) put(stream, --owed == 0 ? last : one);
        }
      } else if (::read(fd, request.data(), request.size()) > 0) {
        put(fd, head);
        left[fd] = tokens;
      } else {
        left.erase(fd);
        ::close(fd);
      }
    }
  }
}
