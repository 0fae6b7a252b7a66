#include "tools/serve_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "testing/folder.h"

namespace sluice {
namespace {

using std::chrono_literals::operator""ms;
using testing::HasSubstr;

Result<std::optional<ServeOptions>> parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "replica");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return parse_serve_options("replica", static_cast<int>(argv.size()), argv.data());
}

ServeOptions parsed(std::vector<std::string> arguments) {
  auto options = parse(std::move(arguments));
  EXPECT_TRUE(options && *options) << (options ? "nothing to serve" : options.error().message);
  return options && *options ? **options : ServeOptions{};
}

void expect_refused(std::vector<std::string> arguments, const std::string& named) {
  const auto options = parse(std::move(arguments));
  ASSERT_FALSE(options) << named;
  EXPECT_THAT(options.error().message, HasSubstr(named));
}

TEST(ServeOptions, WithoutFlagsTheDefaultsOfLimitsHold) {
  const Limits limits = parsed({}).replica.limits;
  EXPECT_EQ(limits.max_sequences, Limits{}.max_sequences);
  EXPECT_EQ(limits.park_limit, Limits{}.park_limit);
  EXPECT_EQ(limits.max_message_bytes, Limits{}.max_message_bytes);
}

TEST(ServeOptions, SizesAndDurationsHaveUnits) {
  const Limits limits =
      parsed({"--max-message-bytes", "20MiB", "--grpc-memory-bytes=1GB", "--park-limit-ms", "1500"})
          .replica.limits;
  EXPECT_EQ(limits.max_message_bytes, 20U << 20);
  EXPECT_EQ(limits.grpc_memory_bytes, 1U << 30);
  EXPECT_EQ(limits.park_limit, 1500ms);
}

TEST(ServeOptions, TheTypeOfTheWeightsHasANameAndADefault) {
  EXPECT_EQ(parsed({}).engine.weights, Weights::kAuto);
  EXPECT_EQ(parsed({"--weights", "file"}).engine.weights, Weights::kFile);
  expect_refused({"--weights", "q9"}, "--weights");
}

TEST(ServeOptions, AFlagBeatsTheFileAndItsLastUseItsFirst) {
  const TestFolder folder;
  const std::string file =
      folder.write("config.toml",
                   "max-n = 3\nmax-messages = 5\nlisten = \"127.0.0.1:1\"\nreflection = \"off\"\n");
  const ReplicaOptions options = parsed({"--config", file, "--max-n", "7", "--max-n", "8"}).replica;
  EXPECT_EQ(options.limits.max_n, 8U);
  EXPECT_EQ(options.limits.max_messages, 5U);
  EXPECT_EQ(options.listen, "127.0.0.1:1");
  EXPECT_EQ(options.reflection, Switch::kOff);
}

TEST(ServeOptions, AFileThatCantBeReadOrHasAnUnknownKeyIsRefused) {
  const TestFolder folder;
  expect_refused({"--config", folder.file("none.toml")}, "none.toml");
  expect_refused({"--config", folder.write("config.toml", "max-sequence = 3\n")},
                 "config.toml:1: no flag of a file is named --max-sequence");
  expect_refused({"--config", folder.write("config.toml", "\nmax-sequences = \"many\"\n")},
                 "config.toml:2: max-sequences is a number");
  expect_refused({"--config", folder.write("config.toml", "\nlog-level = \"LOUD\"\n")},
                 "config.toml:2: --log-level");
}

TEST(ServeOptions, AValueOutOfRangeNamesItsFlag) {
  for (const char* value : {"0", "-1", "many", "4294967296", "1.5", ""}) {
    expect_refused({"--max-sequences", value}, "--max-sequences");
  }
  expect_refused({"--park-limit-ms", "-1"}, "--park-limit-ms");
  for (const char* value : {"0.5", "nan", "inf", "1001", "1x"})
    expect_refused({"--prefill-stretch", value}, "--prefill-stretch");
  for (const char* value : {"-1", "18446744073709551616"})
    expect_refused({"--max-queued-prompt-tokens", value}, "--max-queued-prompt-tokens");
  expect_refused({"--http2-frame-bytes", "1KiB"}, "--http2-frame-bytes");
  expect_refused({"--engine", "steam"}, "--engine");
  expect_refused({"--reflection", "perhaps"}, "--reflection");
  expect_refused({"--log-level", "loud"}, "--log-level");
  expect_refused({"--no-such-flag"}, "--no-such-flag");
  expect_refused({"stray"}, "stray");
}

// These would abort, or not start with an error that blames another flag.
TEST(ServeOptions, AValueThatCantWorkIsRefusedByItsFlag) {
  for (const auto& [flag, value] : std::vector<std::pair<std::string, std::string>>{
           {"--max-sequences", "4294967295"},
           {"--max-message-bytes", "1"},
           {"--max-message-bytes", "4294967295"},
           {"--grpc-memory-bytes", "1"},
           {"--grpc-memory-bytes", "18446744073709551615"},
           {"--max-concurrent-streams", "4294967295"},
           {"--max-connection-age-ms", "0"},
           {"--keepalive-time-ms", "0"},
           {"--keepalive-timeout-ms", "0"},
           {"--handshake-timeout-ms", "0"}}) {
    expect_refused({flag, value}, flag);
  }
}

TEST(ServeOptions, AConfigurationMustBeNamedAndBeAFileWithAnEnd) {
  expect_refused({"--config", ""}, "--config");
  for (const char* path : {"/", "/proc/self/mem", "/dev/zero"}) {
    expect_refused({"--config", path}, "--config");
    expect_refused({"--config", path}, path);
  }
}

TEST(ServeOptions, OneProcessHasOneGraceUnlessTwoAreAskedFor) {
  const auto graces = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "up");
    std::vector<char*> argv;
    for (std::string& flag : flags) argv.push_back(flag.data());
    const auto options = parse_serve_options("up", static_cast<int>(argv.size()), argv.data());
    EXPECT_TRUE(options && *options);
    return std::pair((*options)->replica.limits.drain_grace,
                     (*options)->gateway->limits.http_drain_grace);
  };
  EXPECT_EQ(graces({}), std::pair(30'000ms, 30'000ms));
  EXPECT_EQ(graces({"--drain-grace-ms", "7"}), std::pair(7ms, 7ms));
  EXPECT_EQ(graces({"--http-drain-grace-ms", "8"}), std::pair(8ms, 8ms));
  EXPECT_EQ(graces({"--http-drain-grace-ms", "8", "--drain-grace-ms", "7"}), std::pair(7ms, 8ms));
}

TEST(ServeOptions, TheScriptedEngineHasRoomForManyUnlessToldOtherwise) {
  const Limits wide = parsed({"--engine", "scripted"}).replica.limits;
  EXPECT_EQ(wide.max_sequences, 65'536U);
  EXPECT_EQ(wide.max_step_tokens, 65'536U);
  EXPECT_EQ(wide.max_queued_requests, 65'536U);
  EXPECT_EQ(parsed({"--engine", "scripted", "--max-sequences", "3"}).replica.limits.max_sequences,
            3U);
}

TEST(ServeOptions, WhatPrintConfigPrintsIsAConfigurationFile) {
  const TestFolder folder;
  testing::internal::CaptureStdout();
  const auto nothing = parse({"--engine", "scripted", "--park-limit-ms", "77", "--print-config"});
  const std::string printed = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing->has_value());
  const ServeOptions again = parsed({"--config", folder.write("config.toml", printed)});
  EXPECT_EQ(again.replica.limits.park_limit, 77ms);
  EXPECT_EQ(again.replica.limits.max_sequences, 65'536U);
  EXPECT_EQ(again.engine.kind, EngineKind::kScripted);
}

}  // namespace
}  // namespace sluice
