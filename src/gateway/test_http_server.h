// TestHttpServer: an HttpServer on a free port with two kinds of handlers ready for tests: one that
// echoes, and one that waits until it is cancelled and says so. Thread: its test's.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gateway/listener.h"
#include "gateway/test_http_client.h"

namespace sluice {

class TestHttpServer {
 public:
  explicit TestHttpServer(HttpHandler handler, const GatewayLimits& limits = {},
                          HttpServerOptions options = {"127.0.0.1:0", {}, {}},
                          std::size_t threads = 1)
      : threads_(threads) {
    auto server = HttpServer::start(options, limits, metrics_, threads_, std::move(handler));
    if (server) server_ = std::move(*server);
    EXPECT_TRUE(server) << server.error().message;
  }

  [[nodiscard]] HttpServer& server() noexcept { return *server_; }
  [[nodiscard]] std::string address() const { return server_->address(); }
  [[nodiscard]] TestHttpClient client(int receive_buffer = 0) const {
    return TestHttpClient(address(), receive_buffer);
  }

  // Waits for a series to have a value, as "name{label="x"} 1"; the server counts after it answers.
  [[nodiscard]] bool shows(const std::string& line) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < until) {
      if (metrics_.text().find(line + "\n") != std::string::npos) return true;
      std::this_thread::yield();
    }
    return false;
  }

 private:
  Metrics metrics_;
  IoThreads threads_;
  std::unique_ptr<HttpServer> server_;
};

// Answers with what was asked.
inline Task<void> echo(HttpRequest& request, Responder& responder, IoThread&) {
  ResponseHead head;
  head.headers.add("Content-Type", "text/plain");
  static_cast<void>(co_await responder.respond(
      std::move(head),
      request.method + " " + request.path + "?" + request.query + " " + request.body));
}

// Counts the handlers that came and went.
struct Presence {
  std::atomic<int> began{0};
  std::atomic<int> ended{0};

  struct Stay {
    explicit Stay(Presence& where) noexcept : presence(where) { ++presence.began; }
    ~Stay() { ++presence.ended; }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;
    Presence& presence;
  };

  [[nodiscard]] static bool reaches(const std::atomic<int>& count, int least) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (count < least && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    return count >= least;
  }
};

// Waits for ever; with `streaming` in the middle of an answer.
inline HttpHandler waiting(Presence& presence, bool streaming) {
  return [&presence, streaming](HttpRequest&, Responder& responder, IoThread& io) -> Task<void> {
    const Presence::Stay stay(presence);
    if (streaming && !co_await responder.begin({}, "first")) co_return;
    asio::steady_timer timer(io.context(), kForever);
    co_await timer.async_wait(asio::use_awaitable);
  };
}

}  // namespace sluice
