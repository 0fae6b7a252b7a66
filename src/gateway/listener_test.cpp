#include "gateway/listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <set>
#include <string>
#include <thread>

#include "gateway/test_http_server.h"
#include "testing/certificates.h"
#include "testing/folder.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

const std::string kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

TEST(HttpServer, ConnectionsBeyondTheLimitAreClosedAtOnceAndLaterOnesServed) {
  GatewayLimits limits;
  limits.max_connections = 2;
  const TestHttpServer server(echo, limits);
  auto first = server.client();
  auto second = server.client();
  for (auto* client : {&first, &second}) {
    client->send(kGet);
    EXPECT_EQ(client->answer().status, 200);
  }
  auto third = server.client();
  EXPECT_TRUE(third.ended());
  EXPECT_TRUE(server.shows("sluice_http_connections_refused_total{why=\"limit\"} 1"));
  first.close();
  EXPECT_TRUE(server.shows("sluice_http_connections 1"));
  auto fourth = server.client();
  fourth.send(kGet);
  EXPECT_EQ(fourth.answer().status, 200);
}

TEST(HttpServer, ConnectionsAreSpreadOverTheThreads) {
  const TestHttpServer server(
      [](HttpRequest&, Responder& responder, IoThread& io) -> Task<void> {
        static_cast<void>(co_await responder.respond({}, std::to_string(io.index())));
      },
      {}, {"127.0.0.1:0", {}, {}}, 2);
  std::multiset<std::string> threads;
  for (int connection = 0; connection < 4; ++connection) {
    auto client = server.client();
    client.send(kGet);
    threads.insert(client.answer().body);
  }
  EXPECT_EQ(threads, (std::multiset<std::string>{"0", "0", "1", "1"}));
}

TEST(HttpServer, WithoutFileDescriptorsItPausesAndThenGoesOn) {
  const TestHttpServer server(echo);
  auto client = server.client();
  client.send(kGet);
  EXPECT_EQ(client.answer().status, 200);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::fcntl(0, F_DUPFD, 0);
  ::close(next);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(next) + 1;  // room for the client's end alone
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  auto waiting_client = server.client();
  EXPECT_TRUE(waiting_client.connected());
  waiting_client.send(kGet);
  EXPECT_TRUE(server.shows("sluice_http_connections_refused_total{why=\"descriptors\"} 1"));
  client.send(kGet);
  EXPECT_EQ(client.answer().status, 200);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(waiting_client.answer().status, 200);
}

TEST(HttpServer, ADrainClosesIdleConnectionsAndLetsAnswersFinish) {
  std::atomic<bool> finish{false};
  Presence presence;
  TestHttpServer server(
      [&](HttpRequest& request, Responder& responder, IoThread& io) -> Task<void> {
        const Presence::Stay stay(presence);
        const bool begun = request.path == "/begun" && co_await responder.begin({}, "some");
        asio::steady_timer timer(io.context());
        while (!finish) {
          timer.expires_after(1ms);
          co_await timer.async_wait(asio::use_awaitable);
        }
        static_cast<void>(begun ? co_await responder.end(" more")
                                : co_await responder.respond({}, "whole"));
      });
  auto idle = server.client();
  auto running = server.client();
  auto begun = server.client();
  running.send(kGet + kGet);
  begun.send("GET /begun HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Presence::reaches(presence.began, 2));
  ASSERT_TRUE(server.shows("sluice_http_connections 3"));
  server.server().drain();
  EXPECT_TRUE(idle.ended());
  finish = true;
  const auto answer = running.answer();
  EXPECT_EQ(answer.body, "whole");
  EXPECT_TRUE(answer.has("Connection: close"));
  EXPECT_EQ(begun.answer().body, "some more");
  running.close();
  begun.close();
  EXPECT_TRUE(server.server().wait_drained());
  EXPECT_EQ(presence.began, 2);
  EXPECT_FALSE(TestHttpClient(server.address()).connected());
}

TEST(HttpServer, ADrainServesNewConnectionsOneRequestEachWhileAnswersRun) {
  Presence presence;
  GatewayLimits limits;
  limits.http_drain_grace = 1h;
  const HttpHandler wait = waiting(presence, true);
  TestHttpServer server(
      [&](HttpRequest& request, Responder& responder, IoThread& io) -> Task<void> {
        return request.path == "/wait" ? wait(request, responder, io)
                                       : echo(request, responder, io);
      },
      limits);
  auto running = server.client();
  running.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Presence::reaches(presence.began, 1));
  server.server().drain();
  auto late = server.client();
  late.send(kGet + kGet);
  const auto answer = late.answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.has("Connection: close"));
  EXPECT_TRUE(late.ended());
  auto silent = server.client();  // holds nothing up
  running.close();
  EXPECT_TRUE(server.server().wait_drained());
  EXPECT_FALSE(TestHttpClient(server.address()).connected());
}

TEST(HttpServer, ADrainIsToBeSeenForItsNoticeUnlessTheGraceEndsBefore) {
  GatewayLimits limits;
  limits.http_drain_grace = limits.http_drain_notice = 1h;
  TestHttpServer server(echo, limits);
  server.server().drain();
  std::thread waiting([&] { EXPECT_FALSE(server.server().wait_drained()); });
  for (int request = 0; request < 2; ++request) {
    auto late = server.client();
    late.send(kGet);
    EXPECT_EQ(late.answer().status, 200);
  }
  server.server().end_grace();
  waiting.join();
}

TEST(HttpServer, WhoAsksToBeToldOfTheGracesEndMayEndItsAnswer) {
  Presence presence;
  GatewayLimits limits;
  limits.http_drain_grace = 20ms;
  TestHttpServer server(
      [&](HttpRequest&, Responder& responder, IoThread& io) -> Task<void> {
        const Presence::Stay stay(presence);
        asio::steady_timer timer(io.context(), kForever);
        responder.when_expired([&] { timer.cancel(); });
        if (!co_await responder.begin({}, "first")) co_return;
        boost::system::error_code ignored;
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        responder.when_expired(nullptr);
        static_cast<void>(co_await responder.end(" and last"));
      },
      limits);
  auto client = server.client();
  client.send(kGet);
  ASSERT_TRUE(Presence::reaches(presence.began, 1));
  server.server().drain();
  EXPECT_EQ(client.answer().body, "first and last");
  client.close();
  EXPECT_FALSE(server.server().wait_drained());
}

TEST(HttpServer, WhoHasNothingOfItsAnswerAtTheGracesEndGets503) {
  Presence presence;
  GatewayLimits limits;
  limits.http_drain_grace = 20ms;
  TestHttpServer server(waiting(presence, false), limits);
  auto client = server.client();
  client.send(kGet);
  ASSERT_TRUE(Presence::reaches(presence.began, 1));
  server.server().drain();
  const auto answer = client.answer();
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(answer.has("Connection: close"));
  EXPECT_NE(answer.body.find("\"code\":\"draining\""), std::string::npos);
  EXPECT_EQ(presence.ended, 1);
  client.close();
  EXPECT_FALSE(server.server().wait_drained());
}

TEST(HttpServer, WhatStillRunsAfterTheGraceIsCut) {
  GatewayLimits limits;
  limits.http_drain_grace = 20ms;
  Presence presence;
  TestHttpServer server(waiting(presence, true), limits);
  auto client = server.client();
  client.send(kGet);
  ASSERT_TRUE(Presence::reaches(presence.began, 1));
  server.server().drain();
  EXPECT_FALSE(server.server().wait_drained());
  EXPECT_EQ(presence.ended, 1);
  EXPECT_EQ(client.answer().body, "first<cut>");
}

TEST(HttpServer, WhatItCantListenOnIsSaidWithAddressAndFlag) {
  const TestHttpServer taken(echo);
  Metrics metrics;
  IoThreads threads(1);
  for (const std::string& address : {taken.address(), std::string("nowhere.invalid:1")}) {
    const auto server = HttpServer::start({address, {}, {}}, {}, metrics, threads, echo);
    ASSERT_FALSE(server);
    EXPECT_NE(server.error().message.find(address + " (--listen)"), std::string::npos);
  }
}

class TlsTest : public testing::Test {
 protected:
  HttpServerOptions options(bool ask_clients) const {
    TlsFiles files{folder_.write("cert.pem", server_.certificate),
                   folder_.write("key.pem", server_.key), ""};
    if (ask_clients) files.client_ca = folder_.write("ca.pem", client_.certificate);
    return {"127.0.0.1:0", files, {}};
  }

  // What a GET over TLS gets; "": nothing.
  std::string get(const std::string& address, bool show_certificate,
                  asio::ssl::context::method method = asio::ssl::context::tls_client) const {
    asio::io_context io;
    asio::ssl::context context(method);
    context.add_certificate_authority(asio::buffer(server_.certificate));
    context.set_verify_mode(asio::ssl::verify_peer);
    if (show_certificate) {
      context.use_certificate_chain(asio::buffer(client_.certificate));
      context.use_private_key(asio::buffer(client_.key), asio::ssl::context::pem);
    }
    asio::ssl::stream<asio::ip::tcp::socket> stream(io, context);
    const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    stream.next_layer().connect({asio::ip::make_address("127.0.0.1"), port});
    boost::system::error_code error;
    stream.handshake(asio::ssl::stream_base::client, error);
    asio::write(stream, asio::buffer("GET /tls HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                error);
    std::string answer;
    asio::read(stream, asio::dynamic_buffer(answer), error);
    EXPECT_TRUE(answer.empty() || error == asio::error::eof) << "the end came without close_notify";
    return answer;
  }

  TestFolder folder_;
  const TestCertificate server_ = TestCertificate::make("server");
  const TestCertificate client_ = TestCertificate::make("client");
};

Task<void> tell_identity(HttpRequest& request, Responder& responder, IoThread&) {
  static_cast<void>(co_await responder.begin({}, "identity: "));
  static_cast<void>(co_await responder.write(request.client_identity));
  static_cast<void>(co_await responder.end("."));
}

TEST_F(TlsTest, TlsIsServedAndPlaintextIsNot) {
  const TestHttpServer server(tell_identity, {}, options(false));
  EXPECT_NE(get(server.address(), false).find("identity: "), std::string::npos);
  auto plain = server.client();
  plain.send(kGet);
  EXPECT_EQ(plain.answer().status, 0);
  EXPECT_TRUE(server.shows("sluice_http_connections_refused_total{why=\"tls\"} 1"));
}

TEST_F(TlsTest, ClientsMustShowACertificateOfTheAuthorityAndAreKnownByIt) {
  const TestHttpServer server(tell_identity, {}, options(true));
  EXPECT_NE(get(server.address(), true).find("CN=client"), std::string::npos);
  EXPECT_EQ(get(server.address(), false), "");
}

TEST_F(TlsTest, VersionsBefore12AreRefused) {
  const TestHttpServer server(tell_identity, {}, options(false));
  EXPECT_EQ(get(server.address(), false, asio::ssl::context::tlsv11_client), "");
  EXPECT_NE(get(server.address(), false, asio::ssl::context::tlsv12_client), "");
}

TEST_F(TlsTest, AHandshakeThatDoesNotComeTimesOut) {
  GatewayLimits limits;
  limits.header_timeout = 20ms;
  const TestHttpServer server(tell_identity, limits, options(false));
  auto silent = server.client();
  EXPECT_TRUE(silent.ended());
  EXPECT_TRUE(server.shows("sluice_http_timeouts_total{kind=\"handshake\"} 1"));
}

TEST_F(TlsTest, AClientThatGoesCancelsItsHandler) {
  Presence presence;
  const TestHttpServer server(waiting(presence, true), {}, options(false));
  asio::io_context io;
  asio::ssl::context context(asio::ssl::context::tls_client);
  {
    asio::ssl::stream<asio::ip::tcp::socket> stream(io, context);
    const std::string address = server.address();
    const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    stream.next_layer().connect({asio::ip::make_address("127.0.0.1"), port});
    stream.handshake(asio::ssl::stream_base::client);
    asio::write(stream, asio::buffer(kGet));
    ASSERT_TRUE(Presence::reaches(presence.began, 1));
  }
  EXPECT_TRUE(Presence::reaches(presence.ended, 1));
  EXPECT_TRUE(server.shows("sluice_http_connections 0"));
}

TEST_F(TlsTest, AFileThatIsMissingIsSaidWithItsFlag) {
  Metrics metrics;
  IoThreads threads(1);
  HttpServerOptions missing = options(false);
  missing.tls.certificate = folder_.file("none.pem");
  const auto server = HttpServer::start(missing, {}, metrics, threads, echo);
  ASSERT_FALSE(server);
  EXPECT_NE(server.error().message.find("none.pem (--tls-cert)"), std::string::npos);
}

}  // namespace
}  // namespace sluice
