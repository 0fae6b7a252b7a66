#include "replica/self_proof.h"

#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <csignal>

#include "replica/credentials.h"
#include "testing/certificates.h"
#include "testing/folder.h"

namespace sluice {
namespace {

using testing::HasSubstr;

Result<void> prove(const SetServerOptions& set_options, const ServerTls* tls = nullptr) {
  return prove_server_options(Limits{}, TransportOptions{}, tls, set_options);
}

// Sets everything as the server does, but spoils one option: of two values gRPC takes the first.
SetServerOptions with(const char* option, int value) {
  return
      [=](const Limits& limits, const TransportOptions& transport, grpc::ServerBuilder& builder) {
        builder.AddChannelArgument(option, value);
        set_server_options(limits, transport, builder);
      };
}

void expect_broken(const SetServerOptions& set_options, const char* flag) {
  const auto proved = prove(set_options);
  ASSERT_FALSE(proved) << flag << " was not proved";
  EXPECT_EQ(proved.error().code, Code::kInternal);
  EXPECT_THAT(proved.error().message, HasSubstr(flag));
}

TEST(SelfProof, HoldsForTheServersOwnOptions) {
  const auto proved = prove(&set_server_options);
  EXPECT_TRUE(proved) << proved.error().message;
}

// The key that a famous server sets: it is ignored, and gRPC's default of five minutes stays.
TEST(SelfProof, FindsAMisspeltPingInterval) {
  expect_broken(
      [](const Limits& limits, const TransportOptions& transport, grpc::ServerBuilder& builder) {
        builder.AddChannelArgument("grpc.http2.min_recv_ping_interval_without_data_ms", 10);
        builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
        builder.AddChannelArgument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, grpc_receive_bound(limits));
        builder.AddChannelArgument(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH,
                                   static_cast<int>(limits.max_message_bytes));
        builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                                   static_cast<int>(limits.max_concurrent_streams));
        builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES,
                                   static_cast<int>(transport.max_ping_strikes));
      },
      "--min-ping-interval-ms");
}

TEST(SelfProof, FindsPingsThatAreOnlyToleratedDuringCalls) {
  expect_broken(with(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0), "--min-ping-interval-ms");
}

TEST(SelfProof, FindsPingsThatAreNeverTooMany) {
  expect_broken(with(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0), "--max-ping-strikes");
  expect_broken(with(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 0),
                "--max-ping-strikes");
}

TEST(SelfProof, FindsMessageBoundsThatAreTooSmallOrMissing) {
  for (const int bound : {100, -1}) {
    expect_broken(with(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, bound), "--max-message-bytes");
    expect_broken(with(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, bound), "--max-message-bytes");
  }
}

TEST(SelfProof, FindsAnotherNumberOfStreams) {
  expect_broken(with(GRPC_ARG_MAX_CONCURRENT_STREAMS, 100), "--max-concurrent-streams");
}

class SelfProofTls : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(
        SIGPIPE,
        SIG_IGN);  // as the server does: OpenSSL writes to connections that the other side closed
    const TestCertificate certificate = TestCertificate::make("server");
    files_.certificate = folder_.write("cert.pem", certificate.certificate);
    files_.key = folder_.write("key.pem", certificate.key);
  }

  TestFolder folder_;
  TlsFiles files_;
};

TEST_F(SelfProofTls, HoldsWithACertificate) {
  const auto tls = ServerTls::load(files_);
  ASSERT_TRUE(tls);
  const auto proved = prove(&set_server_options, tls->get());
  EXPECT_TRUE(proved) << proved.error().message;
}

TEST_F(SelfProofTls, HoldsWhenClientsMustShowOne) {
  files_.client_ca = files_.certificate;
  const auto tls = ServerTls::load(files_);
  ASSERT_TRUE(tls);
  const auto proved = prove(&set_server_options, tls->get());
  EXPECT_TRUE(proved) << proved.error().message;
}

}  // namespace
}  // namespace sluice
