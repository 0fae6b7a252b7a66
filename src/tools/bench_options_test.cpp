#include "tools/bench_options.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice {
namespace {

Result<std::optional<BenchOptions>> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "bench");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return parse_bench_options(static_cast<int>(argv.size()), argv.data());
}

TEST(BenchOptions, TargetSaysProtocolAndPlace) {
  struct Case {
    const char* text;
    LoadProtocol protocol;
    bool tls;
    const char* host;
    const char* port;
    const char* path;
  };
  for (const Case& each :
       {Case{"localhost:50051", LoadProtocol::kGrpc, false, "localhost", "50051", ""},
        Case{"grpc://[::1]:1", LoadProtocol::kGrpc, false, "::1", "1", ""},
        Case{"grpcs://a:2", LoadProtocol::kGrpc, true, "a", "2", ""},
        Case{"http://b:8080", LoadProtocol::kRest, false, "b", "8080", ""},
        Case{"http://b", LoadProtocol::kRest, false, "b", "80", ""},
        Case{"https://b/x/v1/", LoadProtocol::kRest, true, "b", "443", "/x"}}) {
    const auto options = parse({each.text});
    ASSERT_TRUE(options) << options.error().message;
    const TargetOptions& target = (*options)->load.target;
    EXPECT_EQ(target.protocol, each.protocol) << each.text;
    EXPECT_EQ(target.tls, each.tls) << each.text;
    EXPECT_EQ(target.host, each.host) << each.text;
    EXPECT_EQ(target.port, each.port) << each.text;
    EXPECT_EQ(target.path, each.path) << each.text;
  }
}

TEST(BenchOptions, FlagsReachTheLoad) {
  const auto options =
      parse({"h:1", "--rate", "2.5", "--arrivals", "constant", "--duration", "1.5",
             "--prompt-tokens", "uniform:3-9", "--requests", "7", "--warm-up", "0", "--channels",
             "4", "--server-metrics", "a:1", "--server-metrics", "b:2"});
  ASSERT_TRUE(options) << options.error().message;
  const LoadOptions& load = (*options)->load;
  EXPECT_EQ(load.rate, 2.5);
  EXPECT_EQ(load.arrivals, ArrivalProcess::kConstant);
  EXPECT_EQ(load.duration.count(), 1500);
  EXPECT_EQ(load.requests, 7U);
  EXPECT_EQ(load.warm_up_share, 0);
  EXPECT_EQ(load.target.channels, 4U);
  EXPECT_EQ(load.server_metrics, (std::vector<std::string>{"a:1", "b:2"}));
}

TEST(BenchOptions, WhatCantBeIsRefusedByItsFlag) {
  struct Case {
    std::vector<std::string> words;
    const char* named;
  };
  for (const Case& each : {Case{{}, "TARGET"}, Case{{"nowhere"}, "TARGET"}, Case{{"h:0"}, "TARGET"},
                           Case{{"h:1", "--prompt-tokens", "x"}, "--prompt-tokens"},
                           Case{{"h:1", "--cancel-share", "0.5"}, "--cancel-share"},
                           Case{{"h:1", "--slow-share", "1.5"}, "--slow-share"},
                           Case{{"h:1", "--prompts", "/no/such"}, "--prompts"},
                           Case{{"h:1", "--key-file", "/no/such"}, "--key-file"},
                           Case{{"http://h:1", "--attach"}, "--attach"}}) {
    const auto options = parse(each.words);
    ASSERT_FALSE(options) << each.named;
    EXPECT_NE(options.error().message.find(each.named), std::string::npos)
        << options.error().message;
  }
}

}  // namespace
}  // namespace sluice
