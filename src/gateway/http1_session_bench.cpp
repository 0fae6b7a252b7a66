// What the HTTP server costs, without anything behind it. Processor time is that of its one I/O
// thread; the clients are threads of the same process.
//
//   http1_session_bench            streamed writes, paced and as fast as they go; small requests
//   http1_session_bench serve PORT  "GET /" answered with one token's worth, for wrk or h2load
#include "gateway/http1_session.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/concat.h"
#include "gateway/listener.h"

namespace sluice {
namespace {

constexpr int kStreams = 400;
constexpr std::chrono::milliseconds kPace{20};
constexpr int kPacedWrites = 250;   // of each stream: five seconds
constexpr int kBurstWrites = 2000;  // of each stream
constexpr int kRequests = 100'000;
constexpr int kRequestConnections = 64;
const std::string kFrame(180, 'x');  // an SSE frame with one token
const std::string kRequest = "GET /answer HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n";

// Streams write at the same moments, as a decode step makes them.
TimePoint next_step() {
  const auto now = std::chrono::steady_clock::now();
  return now + kPace - now.time_since_epoch() % kPace;
}

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double thread_seconds(IoThread& io) {
  std::promise<double> seconds;
  asio::post(io.context(), [&] { seconds.set_value(thread_seconds()); });
  return seconds.get_future().get();
}

Task<void> handle(HttpRequest& request, Responder& responder, IoThread& io) {
  if (request.path != "/paced" && request.path != "/burst") {
    static_cast<void>(co_await responder.respond({}, kFrame));
    co_return;
  }
  const bool paced = request.path == "/paced";
  asio::steady_timer timer(io.context());
  auto next = next_step();
  bool taken = co_await responder.begin({}, kFrame);
  for (int write = 1; taken && write < (paced ? kPacedWrites : kBurstWrites); ++write) {
    if (paced) {
      timer.expires_at(next += kPace);
      co_await timer.async_wait(asio::use_awaitable);
    }
    taken = co_await responder.write(kFrame);
  }
  static_cast<void>(co_await responder.end(""));
}

// The same without the write, to be subtracted: what waiting costs.
Task<void> only_wait(IoThread& io, std::atomic<int>& left) {
  asio::steady_timer timer(io.context());
  auto next = next_step();
  for (int write = 1; write < kPacedWrites; ++write) {
    timer.expires_at(next += kPace);
    co_await timer.async_wait(asio::use_awaitable);
  }
  --left;
}

// Connections that send `request` as often as told and read all that comes.
class Clients {
 public:
  Clients(const std::string& address, int count) : poll_(::epoll_create1(0)) {
    sockaddr_in server{};
    server.sin_family = AF_INET;
    server.sin_port =
        htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1)));
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int one = 0; one < count; ++one) {
      const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
      if (::connect(fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0) {
        std::exit(1);
      }
      epoll_event event{EPOLLIN, {.fd = fd}};
      ::epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event);
      fds_.push_back(fd);
    }
  }
  ~Clients() {
    for (const int fd : fds_) ::close(fd);
    ::close(poll_);
  }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  void ask_all(const std::string& request) {
    for (const int fd : fds_) static_cast<void>(::send(fd, request.data(), request.size(), 0));
  }

  // Until `ends` answers have come, each of which ends in `end`; asks again while `again` > 0.
  void read(int ends, std::string_view end, int again) {
    std::vector<char> bytes(256 << 10);
    while (ends > 0) {
      epoll_event events[64];
      const int ready = ::epoll_wait(poll_, events, 64, -1);
      for (int one = 0; one < ready; ++one) {
        const ssize_t got = ::recv(events[one].data.fd, bytes.data(), bytes.size(), 0);
        if (got <= 0) std::exit(1);
        const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
        if (!text.ends_with(end)) continue;
        --ends;
        if (again-- > 0) ::send(events[one].data.fd, kRequest.data(), kRequest.size(), 0);
      }
    }
  }

 private:
  int poll_;
  std::vector<int> fds_;
};

void measure_streams(HttpServer& server, IoThread& io, const std::string& path, int writes) {
  Clients clients(server.address(), kStreams);
  const double before = thread_seconds(io);
  const auto start = std::chrono::steady_clock::now();
  clients.ask_all("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  clients.read(kStreams, "0\r\n\r\n", 0);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  const double spent = thread_seconds(io) - before;
  const double all = static_cast<double>(kStreams) * writes;
  std::printf("%-8s %d streams: %.2f us of processor time a write, %.0f writes/s\n", path.c_str(),
              kStreams, spent / all * 1e6, all / wall.count());
}

// The same bytes at the same moments by bare writev: what no server can go below.
void measure_floor() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(listener, reinterpret_cast<const sockaddr*>(&address), size);
  ::listen(listener, kStreams);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  Clients clients(concat("127.0.0.1:", ntohs(address.sin_port)), kStreams);
  std::vector<int> fds;
  for (int stream = 0; stream < kStreams; ++stream) {
    fds.push_back(::accept(listener, nullptr, nullptr));
    const int on = 1;
    ::setsockopt(fds.back(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  std::string header = "b4\r\n";
  std::string frame = kFrame;
  std::string end = "\r\n";
  iovec pieces[3] = {{header.data(), header.size()}, {frame.data(), frame.size()}, {end.data(), 2}};
  std::thread reader([&] { clients.read(kStreams, "0\r\n\r\n", 0); });
  const double before = thread_seconds();
  for (int write = 0; write < kPacedWrites; ++write) {
    std::this_thread::sleep_until(next_step());
    for (const int fd : fds) static_cast<void>(::writev(fd, pieces, 3));
  }
  const double spent = thread_seconds() - before;
  for (const int fd : fds) static_cast<void>(::send(fd, "0\r\n\r\n", 5, 0));
  reader.join();
  for (const int fd : fds) ::close(fd);
  ::close(listener);
  std::printf("floor    %d streams: %.2f us of processor time a writev, paced\n", kStreams,
              spent / kStreams / kPacedWrites * 1e6);
}

void measure_waiting(IoThread& io) {
  std::atomic<int> left{kStreams};
  const double before = thread_seconds(io);
  for (int stream = 0; stream < kStreams; ++stream) {
    asio::co_spawn(io.context(), only_wait(io, left), asio::detached);
  }
  while (left > 0) std::this_thread::sleep_for(kPace);
  std::printf("waiting  alone: %.2f us\n",
              (thread_seconds(io) - before) / kStreams / kPacedWrites * 1e6);
}

void measure_requests(HttpServer& server, IoThread& io) {
  Clients clients(server.address(), kRequestConnections);
  const double before = thread_seconds(io);
  const auto start = std::chrono::steady_clock::now();
  clients.ask_all(kRequest);
  clients.read(kRequests, "x", kRequests - kRequestConnections);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  std::printf("requests %d connections: %.2f us of processor time a request, %.0f requests/s\n",
              kRequestConnections, (thread_seconds(io) - before) / kRequests * 1e6,
              kRequests / wall.count());
}

int run(int argc, char** argv) {
  Metrics metrics;
  IoThreads threads(1);
  const bool serve = argc == 3 && std::string(argv[1]) == "serve";
  auto server = HttpServer::start({std::string("127.0.0.1:") + (serve ? argv[2] : "0"), {}, {}}, {},
                                  metrics, threads, handle);
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    return 1;
  }
  if (serve) {
    std::printf("ready %s\n", (*server)->address().c_str());
    std::getchar();
    return 0;
  }
  measure_waiting(threads[0]);
  measure_floor();
  measure_streams(**server, threads[0], "/paced", kPacedWrites);
  measure_streams(**server, threads[0], "/burst", kBurstWrites);
  measure_requests(**server, threads[0]);
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::run(argc, argv); }
