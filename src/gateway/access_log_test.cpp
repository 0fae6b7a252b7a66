#include "gateway/access_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "testing/folder.h"

namespace sluice {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;
using testing::HasSubstr;

boost::json::object parsed(const std::string& line) {
  EXPECT_EQ(line.find('\n'), std::string::npos);
  boost::system::error_code error;
  auto value = boost::json::parse(line, error);
  EXPECT_FALSE(error) << line;
  return value.is_object() ? value.as_object() : boost::json::object{};
}

AccessRecord whole_record() {
  return {.request_id = "req-1",
          .key = "alice",
          .method = "POST",
          .route = "/v1/chat/completions",
          .status = 200,
          .failure = std::nullopt,
          .model = "local",
          .replica = "127.0.0.1:50051",
          .routing_reason = "affinity",
          .attempts = 1,
          .stream = true,
          .finish_reason = "stop",
          .prompt_tokens = 10,
          .completion_tokens = 20,
          .cached_tokens = 0,
          .bytes_in = 100,
          .bytes_out = 2000,
          .unknown_fields = 3,
          .queue = 4ms,
          .ttft = 25ms,
          .duration = 120ms,
          .overhead = 150us};
}

TEST(AccessLog, ALineTellsAllOfARequest) {
  const auto at =
      std::chrono::system_clock::time_point{std::chrono::milliseconds{1'790'000'000'007}};
  EXPECT_EQ(to_json(whole_record(), at),
            R"({"time":"2026-09-21T14:13:20.007Z","request_id":"req-1","key":"alice",)"
            R"("method":"POST","route":"/v1/chat/completions","status":200,"code":"OK",)"
            R"("model":"local","replica":"127.0.0.1:50051","routing_reason":"affinity",)"
            R"("attempts":1,"stream":true,"finish_reason":"stop","prompt_tokens":10,)"
            R"("completion_tokens":20,"cached_tokens":0,"bytes_in":100,"bytes_out":2000,)"
            R"("unknown_fields":3,"queue_ms":4,"ttft_ms":25,"duration_ms":120,"overhead_us":150})");
}

TEST(AccessLog, WhatIsNotKnownDoesNotStandInTheLine) {
  AccessRecord record;
  record.status = 499;
  record.failure = Code::kCancelled;
  const auto line = parsed(to_json(record, {}));
  EXPECT_EQ(line.at("status").as_int64(), 499);
  EXPECT_EQ(line.at("code").as_string(), "CANCELLED");
  for (const char* absent : {"model", "replica", "prompt_tokens", "ttft_ms", "overhead_us"})
    EXPECT_FALSE(line.contains(absent)) << absent;
}

TEST(AccessLog, WhatClientsSayStaysWithinItsString) {
  for (const std::string& model :
       {std::string("\",\"key\":\"root"), std::string("a\nb\r\n"), std::string("\x1b[31m"),
        std::string("\\"), std::string("nul\0nul", 7)}) {
    AccessRecord record = whole_record();
    record.model = model;
    const auto line = parsed(to_json(record, {}));
    EXPECT_EQ(line.at("model").as_string(), model);
    EXPECT_EQ(line.at("key").as_string(), "alice");
  }
}

TEST(AccessLog, BytesThatAreNoTextAreNotWritten) {
  AccessRecord record = whole_record();
  record.model = "a\xff\xc3";
  EXPECT_EQ(parsed(to_json(record, {})).at("model").as_string(), "a??");
  record.model = "Größe";
  EXPECT_EQ(parsed(to_json(record, {})).at("model").as_string(), "Größe");
}

TEST(AccessLog, AFileHasOneLineARequest) {
  const TestFolder folder;
  Metrics metrics;
  {
    auto log = AccessLog::open(folder.file("log"), 1 << 20, metrics);
    ASSERT_TRUE(log);
    log->write(whole_record());
    log->write(whole_record());
  }
  const std::string text = folder.read("log");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(parsed(text.substr(0, text.find('\n'))).at("request_id").as_string(), "req-1");
}

TEST(AccessLog, LostLinesAreCounted) {
  const TestFolder folder;
  Metrics metrics;
  auto log = AccessLog::open(folder.file("log"), 100, metrics);
  ASSERT_TRUE(log);
  log->write(whole_record());
  EXPECT_THAT(metrics.text(), HasSubstr("sluice_access_log_lost_total 1\n"));
}

TEST(AccessLog, OffWritesNothingAndAFaultNamesTargetAndFlag) {
  const TestFolder folder;
  Metrics metrics;
  auto off = AccessLog::open("off", 1 << 20, metrics);
  ASSERT_TRUE(off);
  off->write(whole_record());
  const auto none = AccessLog::open(folder.file("none/log"), 1 << 20, metrics);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("--access-log"));
  EXPECT_THAT(none.error().message, HasSubstr(folder.file("none/log")));
}

}  // namespace
}  // namespace sluice
