#include "gateway/http1_session.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "gateway/test_http_server.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

const std::string kGet = "GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n";

TEST(Http1Session, AConnectionServesOneRequestAfterAnother) {
  const TestHttpServer server(echo);
  auto client = server.client();
  for (int request = 0; request < 3; ++request) {
    client.send(kGet);
    const auto answer = client.answer();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "GET /a?b ");
    EXPECT_TRUE(answer.has("HTTP/1.1 200 OK\r\nDate: "));
    EXPECT_TRUE(answer.has("Content-Type: text/plain\r\nContent-Length: 9\r\n\r\n"));
  }
  EXPECT_TRUE(server.shows("sluice_http_requests_total 3"));
  EXPECT_TRUE(server.shows("sluice_http_connections_total 1"));
}

TEST(Http1Session, PipelinedRequestsAreAnsweredInTheirOrder) {
  const TestHttpServer server(echo);
  auto client = server.client();
  client.send(
      "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"
      "POST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
      "POST /3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
      "GET /4 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.answer().body, "GET /1? ");
  EXPECT_EQ(client.answer().body, "POST /2? body");
  EXPECT_EQ(client.answer().body, "POST /3? hi");
  const auto last = client.answer();
  EXPECT_EQ(last.body, "GET /4? ");
  EXPECT_TRUE(last.has("Connection: close\r\n"));
  EXPECT_TRUE(client.ended());
}

TEST(Http1Session, HeadGetsTheHeadAlone) {
  const TestHttpServer server(echo);
  auto client = server.client();
  client.send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(client.answer(true).has("Content-Length: 9\r\n"));
  client.send(kGet);
  EXPECT_EQ(client.answer().body, "GET /a?b ");
}

TEST(Http1Session, NoContentHasNeitherBodyNorLength) {
  const TestHttpServer server([](HttpRequest&, Responder& responder, IoThread&) -> Task<void> {
    static_cast<void>(co_await responder.respond({204, {}}, "not sent"));
  });
  auto client = server.client();
  client.send(kGet + kGet);
  const auto answer = client.answer();
  EXPECT_EQ(answer.status, 204);
  EXPECT_FALSE(answer.has("Content-Length"));
  EXPECT_EQ(client.answer().status, 204);
}

Task<void> stream(HttpRequest&, Responder& responder, IoThread&) {
  ResponseHead head;
  head.headers.add("X-Good", "yes");
  head.headers.add("X-Bad", "a\r\nX-Injected: yes");
  static_cast<void>(co_await responder.begin(std::move(head), "one"));
  static_cast<void>(co_await responder.write(""));
  static_cast<void>(co_await responder.write("two, which is longer"));
  static_cast<void>(co_await responder.end("three"));
}

TEST(Http1Session, AStreamedAnswerIsChunkedAndTheConnectionGoesOn) {
  const TestHttpServer server(stream);
  auto client = server.client();
  client.send(kGet + kGet);
  EXPECT_EQ(client.read_through("0\r\n\r\n"), client.read_through("0\r\n\r\n"));
  client.send(kGet);
  const std::string head = client.read_through("\r\n\r\n");
  EXPECT_NE(head.find("X-Good: yes\r\nTransfer-Encoding: chunked\r\n\r\n"), std::string::npos);
  EXPECT_EQ(head.find("X-Injected"), std::string::npos);
  EXPECT_EQ(client.read_through("0\r\n\r\n"),
            "3\r\none\r\n14\r\ntwo, which is longer\r\n5\r\nthree\r\n0\r\n\r\n");
}

TEST(Http1Session, ToHttp10AStreamedAnswerEndsWithTheConnection) {
  const TestHttpServer server(stream);
  auto client = server.client();
  client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto answer = client.answer();
  EXPECT_FALSE(answer.has("Transfer-Encoding"));
  EXPECT_TRUE(answer.has("Connection: close\r\n"));
  EXPECT_EQ(answer.body, "onetwo, which is longerthree");
}

TEST(Http1Session, ToHttp10AWholeAnswerKeepsTheConnectionIfAsked) {
  const TestHttpServer server(echo);
  auto client = server.client();
  client.send("GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(client.answer().has("Connection: keep-alive\r\n"));
  client.send("GET /2 HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.answer().body, "GET /2? ");
  EXPECT_TRUE(client.ended());
}

TEST(Http1Session, AClientThatWaitsToBeAskedForItsBodyIsAsked) {
  const TestHttpServer server(echo);
  auto client = server.client();
  client.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.read_through("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_EQ(client.answer().body, "POST /? ok");
}

TEST(Http1Session, WhatIsRefusedIsToldInOpenAisShapeAndEndsTheConnection) {
  struct Case {
    std::string bytes;
    int status;
  };
  GatewayLimits limits;
  limits.max_header_bytes = 200;
  limits.max_body_bytes = 100;
  const std::string post = "POST / HTTP/1.1\r\nHost: x\r\n";
  const std::vector<Case> cases = {
      {"nonsense\r\n\r\n", 400},
      {post + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {post + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {post + "Content-Length: 101\r\n\r\n" + std::string(4 << 20, 'x'), 413},
      {post + "Content-Length: 101\r\nExpect: 100-continue\r\n\r\n", 413},
      {"GET /" + std::string(300, 'a'), 414},
      {"GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(1 << 20, 'a'), 431},
      {"GET / HTTP/3.0\r\n\r\n", 505}};
  const TestHttpServer server(echo, limits);
  for (const auto& [bytes, status] : cases) {
    auto client = server.client();
    client.send(bytes);
    const auto answer = client.answer();
    EXPECT_EQ(answer.status, status);
    EXPECT_TRUE(answer.has("Connection: close\r\n") && answer.has("application/json")) << status;
    EXPECT_EQ(answer.body.rfind(R"({"error":{"message":")", 0), 0U) << answer.body;
    client.shut_down_sending();
    EXPECT_TRUE(client.ended());
  }
  EXPECT_TRUE(server.shows("sluice_http_requests_refused_total{status=\"413\"} 2"));
}

TEST(Http1Session, EachTimeOutHasItsEndAndItsCount) {
  struct Case {
    const char* kind;
    std::string bytes;
    int status;  // 0: closed without a word
  };
  GatewayLimits limits;
  limits.header_timeout = limits.body_timeout = limits.idle_timeout = 20ms;
  const TestHttpServer server(echo, limits);
  const std::vector<Case> cases = {
      {"idle", "", 0},
      {"header", "GET / HTTP/1.1\r\n", 408},
      {"body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1", 408}};
  for (const auto& [kind, bytes, status] : cases) {
    auto client = server.client();
    client.send(bytes);
    EXPECT_EQ(client.answer().status, status) << kind;
    EXPECT_TRUE(client.ended()) << kind;
    EXPECT_TRUE(server.shows(std::string("sluice_http_timeouts_total{kind=\"") + kind + "\"} 1"));
  }
}

TEST(Http1Session, AClientThatGoesCancelsItsHandlerAtOnce) {
  using Leave = void (TestHttpClient::*)();
  for (const bool streaming : {false, true}) {
    for (const Leave leave :
         {&TestHttpClient::close, &TestHttpClient::reset, &TestHttpClient::shut_down_sending}) {
      Presence presence;
      const TestHttpServer server(waiting(presence, streaming));
      auto client = server.client();
      client.send(kGet);
      ASSERT_TRUE(Presence::reaches(presence.began, 1));
      if (streaming) client.read_through("first\r\n");
      (client.*leave)();
      EXPECT_TRUE(Presence::reaches(presence.ended, 1));
      EXPECT_TRUE(server.shows("sluice_http_clients_gone_total 1"));
      EXPECT_TRUE(server.shows("sluice_http_connections 0"));
    }
  }
}

TEST(Http1Session, AClientThatGoesIsNoticedBehindItsPipelinedRequests) {
  Presence presence;
  const TestHttpServer server(waiting(presence, false));
  auto client = server.client();
  client.send(kGet);
  ASSERT_TRUE(Presence::reaches(presence.began, 1));
  client.send(kGet + kGet);
  client.close();
  EXPECT_TRUE(Presence::reaches(presence.ended, 1));
  EXPECT_TRUE(server.shows("sluice_http_connections 0"));
  EXPECT_EQ(presence.began, 1);
}

TEST(Http1Session, BehindWhatIsPipelinedBeyondTheBoundAClientThatGoesIsStillNoticed) {
  Presence presence;
  GatewayLimits limits;
  limits.max_header_bytes = 1000;
  const TestHttpServer server(waiting(presence, false), limits);
  auto client = server.client();
  client.send(kGet);
  ASSERT_TRUE(Presence::reaches(presence.began, 1));
  client.send(std::string(256 << 10, 'x'));
  client.shut_down_sending();
  EXPECT_TRUE(Presence::reaches(presence.ended, 1));
  EXPECT_TRUE(server.shows("sluice_http_connections 0"));
}

TEST(Http1Session, AClientThatDoesNotReadStopsTheWriterAndIsCutAfterTheWriteTimeOut) {
  Presence presence;
  std::atomic<std::size_t> written{0};
  GatewayLimits limits;
  limits.write_timeout = 50ms;
  const TestHttpServer server(
      [&](HttpRequest&, Responder& responder, IoThread&) -> Task<void> {
        const Presence::Stay stay(presence);
        const std::string bytes(1000, 'x');
        bool taken = co_await responder.begin({}, "");
        while (taken) {
          written += bytes.size();
          taken = co_await responder.write(bytes);
        }
      },
      limits);
  auto client = server.client(4096);
  client.send(kGet);
  EXPECT_TRUE(Presence::reaches(presence.ended, 1));
  EXPECT_LT(written, 1U << 20);
  EXPECT_TRUE(server.shows("sluice_http_timeouts_total{kind=\"write\"} 1"));
}

TEST(Http1Session, ASlowReaderGetsEveryByte) {
  std::string whole;
  for (int number = 0; number < 100'000; ++number) whole += std::to_string(number) + ",";
  const TestHttpServer server([&](HttpRequest&, Responder& responder, IoThread&) -> Task<void> {
    static_cast<void>(co_await responder.begin({}, ""));
    for (std::size_t at = 0; at < whole.size(); at += 777) {
      static_cast<void>(co_await responder.write(std::string_view(whole).substr(at, 777)));
    }
    static_cast<void>(co_await responder.end(""));
  });
  auto client = server.client(4096);
  client.send(kGet);
  EXPECT_EQ(client.answer().body, whole);
}

TEST(Http1Session, AHandlerThatGivesNoAnswerGives500) {
  const TestHttpServer server([](HttpRequest&, Responder&, IoThread&) -> Task<void> { co_return; });
  auto client = server.client();
  client.send(kGet);
  EXPECT_EQ(client.answer().status, 500);
  EXPECT_TRUE(client.ended());
}

TEST(Http1Session, AHandlerThatThrowsOrStopsHalfwayCutsTheAnswerForAllToSee) {
  const TestHttpServer server(
      [](HttpRequest& request, Responder& responder, IoThread&) -> Task<void> {
        if (request.path == "/throw") throw std::runtime_error("no");
        static_cast<void>(co_await responder.begin({}, "half"));
      });
  auto first = server.client();
  first.send("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(first.ended());
  auto second = server.client();
  second.send(kGet);
  EXPECT_EQ(second.answer().body, "half<cut>");
}

}  // namespace
}  // namespace sluice
