#include "tools/gateway_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "testing/folder.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<std::optional<GatewayCommand>> parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "gateway");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return parse_gateway_options(static_cast<int>(argv.size()), argv.data());
}

GatewayOptions parsed(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--replica", "a:1"});
  const auto command = parse(std::move(arguments));
  EXPECT_TRUE(command && *command) << (command ? "nothing" : command.error().message);
  return command && *command ? (**command).gateway : GatewayOptions{};
}

TEST(GatewayOptions, WithoutFlagsItServesLoopback) {
  const GatewayOptions options = parsed({});
  EXPECT_EQ(options.listen, "127.0.0.1:8080");
  EXPECT_THAT(options.cors_origins, IsEmpty());
  EXPECT_THAT(options.trusted_clients, IsEmpty());
  EXPECT_EQ(options.policy, PoolPolicy::kAffinity);
  EXPECT_EQ(options.access_log, "stderr");
}

TEST(GatewayOptions, ReplicasAndOriginsMayBeGivenManyTimes) {
  const GatewayOptions options = parsed({"--replica", "b:2;name=x", "--cors-origin", "https://a",
                                         "--cors-origin", "https://b", "--policy", "round-robin"});
  EXPECT_THAT(options.replicas, ElementsAre("b:2;name=x", "a:1"));
  EXPECT_THAT(options.cors_origins, ElementsAre("https://a", "https://b"));
  EXPECT_EQ(options.policy, PoolPolicy::kRoundRobin);
}

TEST(GatewayOptions, AFileSaysTheSame) {
  const TestFolder folder;
  const auto command = parse(
      {"--config",
       folder.write("config.toml",
                    "replica = [\"a:1\", \"b:2\"]\npolicy = \"least-load\"\n"
                    "cors-origin = \"https://a\"\ninsecure-open = true\nlisten = \"0.0.0.0:1\"\n"
                    "access-log = \"off\"\naccess-log-bytes = \"2MiB\"\n")});
  ASSERT_TRUE(command && *command) << command.error().message;
  const GatewayOptions& options = (**command).gateway;
  EXPECT_THAT(options.replicas, ElementsAre("a:1", "b:2"));
  EXPECT_EQ(options.policy, PoolPolicy::kLeastLoad);
  EXPECT_THAT(options.cors_origins, ElementsAre("https://a"));
  EXPECT_TRUE(options.insecure_open);
  EXPECT_EQ(options.access_log_bytes, 2U << 20);
}

TEST(GatewayOptions, WhatPrintConfigPrintsIsAConfigurationFile) {
  const TestFolder folder;
  testing::internal::CaptureStdout();
  const auto nothing = parse({"--replica", "a:1", "--replica", "b:2", "--cors-origin", "https://a",
                              "--access-log-bytes", "8192", "--print-config"});
  const std::string printed = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(nothing) << nothing.error().message;
  EXPECT_FALSE(nothing->has_value());
  const auto again = parse({"--config", folder.write("config.toml", printed)});
  ASSERT_TRUE(again && *again) << again.error().message << printed;
  EXPECT_THAT((**again).gateway.replicas, ElementsAre("a:1", "b:2"));
  EXPECT_THAT((**again).gateway.cors_origins, ElementsAre("https://a"));
  EXPECT_EQ((**again).gateway.access_log_bytes, 8192U);
  EXPECT_FALSE((**again).gateway.insecure_open);
  EXPECT_THAT((**again).gateway.trusted_clients, IsEmpty());
  EXPECT_THAT(printed, HasSubstr("listen=\"127.0.0.1:8080\""));
}

TEST(GatewayOptions, WhatIsPrintedOfDefaultsIsReadAsDefaults) {
  const TestFolder folder;
  testing::internal::CaptureStdout();
  ASSERT_TRUE(parse({"--print-config"}));
  const std::string printed = testing::internal::GetCapturedStdout();
  const auto again = parse({"--replica", "a:1", "--config", folder.write("config.toml", printed)});
  ASSERT_TRUE(again && *again) << again.error().message << printed;
  EXPECT_THAT((**again).gateway.cors_origins, IsEmpty());
  EXPECT_THAT((**again).gateway.trusted_clients, IsEmpty());
  EXPECT_EQ((**again).gateway.api_keys, "");
}

TEST(GatewayOptions, WithoutKeysItListensOnLoopbackOnly) {
  for (const char* loopback : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"})
    EXPECT_EQ(parsed({"--listen", loopback}).listen, loopback);
  for (const char* open :
       {"0.0.0.0:1", "[::]:1", "192.0.2.1:1", "gateway.example:1", "127.0.0.1.example:1"}) {
    const auto refused = parse({"--replica", "a:1", "--listen", open});
    ASSERT_FALSE(refused) << open;
    for (const char* word : {"--listen", open, "--api-keys", "--insecure-open"})
      EXPECT_THAT(refused.error().message, HasSubstr(word));
  }
}

TEST(GatewayOptions, KeysCertificatesOrAFlagOpenOtherAddresses) {
  for (const auto& [flag, value] : std::vector<std::pair<std::string, std::string>>{
           {"--api-keys", "keys"}, {"--tls-client-ca", "ca.pem"}, {"--insecure-open", ""}}) {
    std::vector<std::string> arguments{"--listen", "0.0.0.0:1", flag};
    if (!value.empty()) arguments.push_back(value);
    EXPECT_EQ(parsed(arguments).listen, "0.0.0.0:1") << flag;
  }
}

TEST(GatewayOptions, FlagsThatMeanNothingAreRefusedByName) {
  for (const auto& [arguments, named] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "--replica"},
           {{"--replica", "a:1", "--listen", "nonsense"}, "--listen"},
           {{"--replica", "a:1", "--policy", "guess"}, "--policy"},
           {{"--replica", "a:1", "--max-json-depth", "deep"}, "--max-json-depth"},
           {{"--replica", "a:1", "--log-level", "loud"}, "--log-level"},
           {{"--replica", "a:1", "--access-log-bytes", "1"}, "--access-log-bytes"},
           {{"--replica", "a:1", "--no-such-flag"}, "--no-such-flag"}}) {
    const auto refused = parse(arguments);
    ASSERT_FALSE(refused) << named;
    EXPECT_THAT(refused.error().message, HasSubstr(named));
  }
}

}  // namespace
}  // namespace sluice
