#include "gateway/http1_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice {
namespace {

using namespace std::string_literals;

// 0: a whole request; -1: it needs more.
int status_of(const std::string& bytes, const GatewayLimits& limits = {}) {
  Http1Parser parser(limits);
  std::size_t taken = 0;
  for (std::size_t now = 1; now > 0 && !parser.refusal() && !parser.done(); taken += now) {
    now = parser.feed(std::string_view(bytes).substr(taken));
  }
  if (parser.refusal()) return parser.refusal()->status;
  return parser.done() ? 0 : -1;
}

struct Case {
  const char* rule;
  std::string bytes;
  int status;
};

std::string get(const std::string& fields, const std::string& target = "/") {
  return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

std::string post(const std::string& fields, const std::string& body) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" + body;
}

TEST(Http1Parser, EveryTrickOfRequestSmugglingIsRefused) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  const std::vector<Case> cases = {
      {"length and coding", post("Content-Length: 5\r\n" + chunked, "0\r\n\r\n"), 400},
      {"coding and length", post(chunked + "Content-Length: 5\r\n", "0\r\n\r\n"), 400},
      {"two lengths", post("Content-Length: 1\r\nContent-Length: 2\r\n", "ab"), 400},
      {"two equal lengths", post("Content-Length: 1\r\nContent-Length: 1\r\n", "a"), 400},
      {"list of lengths", post("Content-Length: 1, 1\r\n", "a"), 400},
      {"plus sign", post("Content-Length: +1\r\n", "a"), 400},
      {"minus sign", post("Content-Length: -1\r\n", "a"), 400},
      {"hexadecimal", post("Content-Length: 0x1\r\n", "a"), 400},
      {"length with a space", post("Content-Length: 1 0\r\n", "a"), 400},
      {"empty length", post("Content-Length:\r\n", "a"), 400},
      {"length beyond 64 bits", post("Content-Length: 18446744073709551617\r\n", "a"), 400},
      {"unknown coding", post("Transfer-Encoding: gzip\r\n", ""), 501},
      {"two codings", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501},
      {"chunked is not last", post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"), 501},
      {"chunked with a vertical tab",
       post("Transfer-Encoding: \x0b"
            "chunked\r\n",
            "0\r\n\r\n"),
       400},
      {"chunked in quotes", post("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n"), 501},
      {"chunked twice", post(chunked + chunked, "0\r\n\r\n"), 400},
      {"coding in HTTP/1.0", "POST / HTTP/1.0\r\n" + chunked + "\r\n0\r\n\r\n", 400},
      {"space before the colon", post("Content-Length : 1\r\n", "a"), 400},
      {"space before the name", get(" X: 1\r\n"), 400},
      {"folded field", get("X: 1\r\n 2\r\n"), 400},
      {"folded with a tab", get("X: 1\r\n\t2\r\n"), 400},
      {"no name", get(": 1\r\n"), 400},
      {"no colon", get("X\r\n"), 400},
      {"NUL in a value", get("X: a\0b\r\n"s), 400},
      {"NUL in a name", get("X\0Y: a\r\n"s), 400},
      {"control byte", get("X: a\x01\r\n"), 400},
      {"delete byte", get("X: a\x7f\r\n"), 400},
      {"bare CR", get("X: a\rb\r\n"), 400},
      {"bare LF", get("X: a\nY: b\r\n"), 400},
      {"bare LFs only", "GET / HTTP/1.1\nHost: a\n\n", 400},
      {"two hosts", get("Host: b\r\n"), 400},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
      {"host with a user", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
      {"chunk size with a sign", post(chunked, "+1\r\na\r\n0\r\n\r\n"), 400},
      {"chunk size with 0x", post(chunked, "0x1\r\na\r\n0\r\n\r\n"), 400},
      {"no chunk size", post(chunked, "\r\na\r\n0\r\n\r\n"), 400},
      {"chunk size beyond 64 bits", post(chunked, "10000000000000001\r\na\r\n"), 400},
      {"chunk header ends in LF", post(chunked, "1\na\r\n0\r\n\r\n"), 400},
      {"LF in a chunk's extension", post(chunked, "1;a\nb\r\na\r\n0\r\n\r\n"), 400},
      {"chunk longer than said", post(chunked, "1\r\nab\r\n0\r\n\r\n"), 400},
      {"length in the trailers", post(chunked, "0\r\nContent-Length: 5\r\n\r\n"), 400},
  };
  for (const auto& [rule, bytes, status] : cases) EXPECT_EQ(status_of(bytes), status) << rule;
}

TEST(Http1Parser, MalformedRequestLinesAreRefused) {
  const std::vector<Case> cases = {
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
      {"HTTP/0.9", "GET /\r\n\r\n", 400},
      {"another protocol", "GET / SPDY/1.1\r\nHost: a\r\n\r\n", 400},
      {"lower case", "GET / http/1.1\r\nHost: a\r\n\r\n", 400},
      {"TLS to a plaintext port", "\x16\x03\x01\x02\x00\x01"s, 400},
      {"two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"space in the target", get("", "/a b"), 400},
      {"space at the end", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
      {"method with a parenthesis", "GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"invalid escape", get("", "/%zz"), 400},
      {"half an escape", get("", "/%4"), 400},
      {"encoded NUL", get("", "/%00"), 400},
      {"fragment", get("", "/a#b"), 400},
      {"neither path nor URL", get("", "v1/models"), 400},
      {"CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"two empty lines before", "\r\n\r\n" + get(""), 400},
      {"one empty line before", "\r\n" + get(""), 0},
      {"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 0},
      {"HTTP/1.0 without a host", "GET / HTTP/1.0\r\n\r\n", 0},
  };
  for (const auto& [rule, bytes, status] : cases) EXPECT_EQ(status_of(bytes), status) << rule;
}

TEST(Http1Parser, LimitsHoldToTheByte) {
  GatewayLimits limits;
  limits.max_header_bytes = 100;
  limits.max_body_bytes = 10;
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  const auto head_of_size = [](std::size_t size) {
    return get("X: " + std::string(size - get("X: \r\n").size(), 'x') + "\r\n");
  };
  const std::vector<Case> cases = {
      {"head at the limit", head_of_size(100), 0},
      {"head above it", head_of_size(101), 431},
      {"head far above it", head_of_size(1000), 431},
      {"target above it", get("", "/" + std::string(200, 'a')), 414},
      {"body at the limit", post("Content-Length: 10\r\n", "0123456789"), 0},
      {"body above it, not sent yet", post("Content-Length: 11\r\n", ""), 413},
      {"chunks at the limit", post(chunked, "5\r\n01234\r\n5\r\n01234\r\n0\r\n\r\n"), 0},
      {"chunks above it", post(chunked, "5\r\n01234\r\n6\r\n"), 413},
      {"endless chunk header", post(chunked, "1;" + std::string(200, 'a')), 400},
      {"endless trailers", post(chunked, "0\r\nX: " + std::string(200, 'a')), 400},
  };
  for (const auto& [rule, bytes, status] : cases)
    EXPECT_EQ(status_of(bytes, limits), status) << rule;
}

TEST(Http1Parser, ARequestIsTheSameWhereverItsBytesAreSplit) {
  const std::string bytes =
      "\r\nPOST http://b/v1/%C3%A9?x=%20 HTTP/1.1\r\nHost: a\r\nX-One:  1 \r\n"
      "Transfer-Encoding: Chunked\r\n\r\n"
      "3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: no\r\n\r\nNEXT";
  const GatewayLimits limits;
  for (std::size_t split = 0; split < bytes.size(); ++split) {
    Http1Parser parser(limits);
    std::size_t taken = parser.feed(std::string_view(bytes).substr(0, split));
    taken += parser.feed(std::string_view(bytes).substr(taken));
    ASSERT_TRUE(parser.done()) << split;
    EXPECT_EQ(bytes.substr(taken), "NEXT");
    const HttpRequest& request = parser.request();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/v1/\xC3\xA9");
    EXPECT_EQ(request.query, "x=%20");
    EXPECT_EQ(request.headers.value("host"), "b");
    EXPECT_EQ(request.headers.value("x-one"), "1");
    EXPECT_EQ(request.headers.find("trailer"), nullptr);
    EXPECT_EQ(request.body, "abcde");
    EXPECT_TRUE(parser.keep_alive());
  }
}

TEST(Http1Parser, KeepAliveIsTheVersionsDefaultUnlessSaid) {
  const GatewayLimits limits;
  const auto keeps = [&](const std::string& bytes) {
    Http1Parser parser(limits);
    EXPECT_EQ(parser.feed(bytes), bytes.size());
    return parser.keep_alive();
  };
  EXPECT_TRUE(keeps(get("")));
  EXPECT_FALSE(keeps(get("Connection: close\r\n")));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
}

TEST(Http1Parser, NoRefusalRepeatsWhatWasSent) {
  const GatewayLimits limits;
  for (const std::string& bytes :
       {get("Secret\r\n"), get("", "/%secret"), get("X: \x01Secret\r\n")}) {
    Http1Parser parser(limits);
    static_cast<void>(parser.feed(bytes));
    ASSERT_TRUE(parser.refusal());
    EXPECT_EQ(parser.refusal()->message.find("ecret"), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice
