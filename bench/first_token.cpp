#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "inference.grpc.pb.h"
#include "load.h"

namespace bench {
namespace {

// One after the other; prints the median of what `once` takes, in µs.
int report(int rounds, const std::function<bool()>& once) {
  std::vector<double> us;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (!once()) return 1;
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
                     .count());
  }
  std::sort(us.begin(), us.end());
  std::printf("{\"p50_us\": %.1f, \"p99_us\": %.1f}\n", us[us.size() / 2],
              us[us.size() * 99 / 100]);
  return 0;
}

int connect_to(const std::string& address) {
  const auto colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + colon + 1)));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 ? fd : -1;
}

// False: the connection ended first.
bool read_until(int fd, std::string& read, std::string_view mark) {
  char buffer[4096];
  while (read.find(mark) == std::string::npos) {
    const ssize_t size = ::recv(fd, buffer, sizeof buffer, 0);
    if (size <= 0) return false;
    read.append(buffer, static_cast<std::size_t>(size));
  }
  return true;
}

}  // namespace

int first_grpc(const Load& load) {
  const auto stub = inference::LLM::NewStub(load.channel);
  inference::GenerateRequest request;
  request.set_model("local");
  request.set_max_tokens(1);
  request.add_messages()->set_role("user");
  request.mutable_messages(0)->set_content("go");
  return report(load.questions, [&] {
    grpc::ClientContext context;
    const auto stream = stub->Generate(&context, request);
    inference::GenerateResponse response;
    if (!stream->Read(&response)) return false;
    while (stream->Read(&response)) {
    }
    return stream->Finish().ok();
  });
}

int first_http(const std::string& address, int rounds) {
  const int fd = connect_to(address);
  const std::string body =
      R"({"model":"local","stream":true,"max_tokens":1,"messages":[{"role":"user","content":"go"}]})";
  const std::string request =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  const int result = report(rounds, [&] {
    std::string read;
    if (::send(fd, request.data(), request.size(), 0) < 0) return false;
    // Whole answers: the token and its end leave in one write.
    return read_until(fd, read, "data: [DONE]\n\n\r\n0\r\n\r\n");
  });
  ::close(fd);
  return result;
}

}  // namespace bench
