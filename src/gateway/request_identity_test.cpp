#include "gateway/request_identity.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kParent = "00f067aa0ba902b7";

RequestIdentity with(const std::string& name, const std::string& value) {
  HttpHeaders headers;
  headers.add(name, value);
  return identify(headers);
}

std::string trace_of(const RequestIdentity& identity) { return identity.traceparent.substr(3, 32); }

TEST(RequestIdentity, AHarmlessIdOfTheCallerIsKept) {
  EXPECT_EQ(with("X-Request-ID", "req_1.2-3").request_id, "req_1.2-3");
}

TEST(RequestIdentity, AnyOtherIsReplacedByANewOne) {
  for (const std::string& given : {std::string(), std::string("a b"), std::string("a\r\nb: c"),
                                   std::string("\"}"), std::string(129, 'x')}) {
    const std::string id = with("x-request-id", given).request_id;
    EXPECT_NE(id, given);
    EXPECT_EQ(id.size(), 32U);
  }
  EXPECT_NE(identify({}).request_id, identify({}).request_id);
}

TEST(RequestIdentity, AValidTraceGoesOnWithThisGatewayAsTheParent) {
  const std::string given = "00-" + kTrace + '-' + kParent + "-01";
  const std::string text = with("TraceParent", given).traceparent;
  ASSERT_EQ(text.size(), given.size());
  EXPECT_EQ(text.substr(0, 36), given.substr(0, 36));
  EXPECT_NE(text.substr(36, 16), kParent);
  EXPECT_NE(text.substr(36, 16), std::string(16, '0'));
  EXPECT_EQ(text.substr(52), "-01");
}

TEST(RequestIdentity, ALaterVersionIsReadAsFarAsItIsKnown) {
  const auto identity = with("traceparent", "cc-" + kTrace + '-' + kParent + "-01-what-comes");
  EXPECT_EQ(trace_of(identity), kTrace);
  EXPECT_EQ(identity.traceparent.substr(0, 3), "00-");
  EXPECT_EQ(identity.traceparent.size(), 55U);
}

TEST(RequestIdentity, WithoutAValidTraceANewOneBegins) {
  const std::vector<std::string> table{
      "",
      "00",
      "ff-" + kTrace + '-' + kParent + "-01",
      "00-" + std::string(32, '0') + '-' + kParent + "-01",
      "00-" + kTrace + '-' + std::string(16, '0') + "-01",
      "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + kParent + "-01",
      "00-" + kTrace + '-' + kParent + "-0g",
      "00-" + kTrace + '-' + kParent + "-01-more",
      "cc-" + kTrace + '-' + kParent + "-01.more",
      "00_" + kTrace + '-' + kParent + "-01",
      "00-" + kTrace + '-' + kParent.substr(1) + "-01",
  };
  for (const std::string& given : table) {
    const auto identity = with("traceparent", given);
    EXPECT_NE(trace_of(identity), kTrace) << given;
    EXPECT_EQ(identity.traceparent.size(), 55U) << given;
    EXPECT_EQ(identity.traceparent.substr(52), "-00") << given;
  }
}

TEST(RequestIdentity, ATraceThatIsGivenTwiceIsNone) {
  HttpHeaders headers;
  headers.add("traceparent", "00-" + kTrace + '-' + kParent + "-01");
  headers.add("Traceparent", "00-" + kTrace + '-' + kParent + "-01");
  EXPECT_NE(trace_of(identify(headers)), kTrace);
}

}  // namespace
}  // namespace sluice
