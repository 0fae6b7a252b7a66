#include "gateway/held_bodies.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "gateway/test_http_server.h"

namespace sluice {
namespace {

constexpr std::size_t kLong = HeldBodies::kLongBody;

TEST(HeldBodies, LongBodiesTogetherStayWithinTheBound) {
  Metrics metrics;
  HeldBodies bodies(3 * kLong, metrics);
  std::optional<HeldBodies::Share> first(std::in_place, bodies);
  HeldBodies::Share second(bodies);
  EXPECT_TRUE(first->grow_to(kLong));
  EXPECT_TRUE(first->grow_to(2 * kLong));
  EXPECT_TRUE(second.grow_to(kLong));
  EXPECT_FALSE(second.grow_to(kLong + 1));
  EXPECT_NE(metrics.text().find("sluice_http_held_body_bytes 196608\n"), std::string::npos);
  first.reset();
  EXPECT_TRUE(second.grow_to(3 * kLong)) << "what was refused is not counted";
}

TEST(HeldBodies, ShortBodiesAreNotCounted) {
  Metrics metrics;
  HeldBodies bodies(0, metrics);
  HeldBodies::Share share(bodies);
  EXPECT_TRUE(share.grow_to(kLong - 1));
  EXPECT_FALSE(share.grow_to(kLong));
}

std::string post_of(std::size_t length) {
  return "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
}

TEST(HeldBodies, AboveTheBoundLongBodiesAreRefusedByNameAndShortOnesServed) {
  GatewayLimits limits;
  limits.max_held_body_bytes = 2 * kLong;
  const TestHttpServer server(echo, limits);
  auto holder = server.client();
  holder.send(post_of(2 * kLong + 1) + std::string(2 * kLong, 'x'));
  ASSERT_TRUE(server.shows("sluice_http_held_body_bytes 131072"));

  auto refused = server.client();
  refused.send(post_of(kLong) + std::string(kLong, 'x'));
  const auto answer = refused.answer();
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(answer.has("Retry-After: 1\r\n"));
  EXPECT_NE(answer.body.find("--max-held-body-bytes"), std::string::npos);
  auto short_one = server.client();
  short_one.send(post_of(kLong - 1) + std::string(kLong - 1, 'x'));
  EXPECT_EQ(short_one.answer().status, 200);

  holder.close();
  EXPECT_TRUE(server.shows("sluice_http_held_body_bytes 0"));
  auto next = server.client();
  next.send(post_of(kLong) + std::string(kLong, 'x'));
  EXPECT_EQ(next.answer().status, 200);
}

}  // namespace
}  // namespace sluice
