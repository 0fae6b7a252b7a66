#include "load/sse_counter.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

const std::string kStream =
    ": comment\n\n"
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"one\"}}],\"usage\":null}\n\n"
    "data: {\"choices\": [{\"delta\": {\"content\": \"two \\\"error\\\" \"}}]}\r\n\r\n"
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,"
    "\"prompt_tokens_details\":{\"cached_tokens\":5}}}\n\n"
    "data: [DONE]\n\n";

TEST(SseCounter, CountsEventsWithTextWhereverThePiecesEnd) {
  for (std::size_t size = 1; size <= kStream.size(); ++size) {
    SseCounter counter;
    std::uint32_t events = 0;
    for (std::size_t at = 0; at < kStream.size(); at += size) {
      events += counter.take(std::string_view(kStream).substr(at, size));
    }
    ASSERT_EQ(events, 2U) << "pieces of " << size;
    ASSERT_TRUE(counter.done());
    ASSERT_TRUE(counter.usage());
    EXPECT_EQ(counter.usage()->prompt_tokens, 7U);
    EXPECT_EQ(counter.usage()->completion_tokens, 3U);
    EXPECT_EQ(counter.usage()->cached_tokens, 5U);
    EXPECT_EQ(counter.error(), "");
  }
}

TEST(SseCounter, ErrorEventIsToldByItsCode) {
  for (const auto& [event, code] :
       {std::pair{R"({"error":{"message":"no","type":"server_error","code":"engine"}})", "engine"},
        {R"({"error":{"message":"no","type":"server_error","code":null}})", "server_error"},
        {R"({"error":{"code":503}})", "503"},
        {R"({"error":"gone"})", "error"}}) {
    SseCounter counter;
    EXPECT_EQ(counter.take(std::string("data: ") + event + "\n"), 0U);
    EXPECT_EQ(counter.error(), code);
  }
}

TEST(SseCounter, LineWithoutEndIsBounded) {
  SseCounter counter;
  for (int i = 0; i < 1000; ++i) static_cast<void>(counter.take(std::string(1000, 'x')));
  EXPECT_EQ(counter.take("\ndata: {\"content\":\"a\"}\n"), 1U);
}

TEST(SseCounter, ClearForgetsTheStreamBefore) {
  SseCounter counter;
  static_cast<void>(counter.take(kStream + "data: {\"content\":\"half"));
  counter.clear();
  EXPECT_FALSE(counter.done());
  EXPECT_FALSE(counter.usage());
  EXPECT_EQ(counter.take("data: {\"content\":\"a\"}\n"), 1U);
}

}  // namespace
}  // namespace sluice
