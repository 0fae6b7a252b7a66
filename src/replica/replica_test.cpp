#include "replica/replica.h"

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/scripted_engine.h"
#include "health.grpc.pb.h"
#include "inference.grpc.pb.h"
#include "reflection_v1.grpc.pb.h"
#include "reflection_v1alpha.grpc.pb.h"
#include "replica/key_file.h"
#include "testing/folder.h"

namespace sluice {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using testing::Contains;
using testing::HasSubstr;
using Status = grpc::health::v1::HealthCheckResponse;

class ReplicaTest : public testing::Test {
 protected:
  static ReplicaOptions options() {
    ReplicaOptions options;
    options.listen = "127.0.0.1:0";
    options.metrics_listen = "off";
    return options;
  }

  Result<std::unique_ptr<Replica>> start(ReplicaOptions options) {
    return Replica::start(std::make_unique<ScriptedEngine>(ScriptedOptions{}, clock_),
                          std::move(options));
  }

  void start_or_fail(ReplicaOptions options) {
    auto started = start(std::move(options));
    ASSERT_TRUE(started) << started.error().message;
    replica_ = std::move(*started);
    channel_ = replica_->in_process_channel();
  }

  Status::ServingStatus health() {
    grpc::ClientContext context;
    Status response;
    const auto status = grpc::health::v1::Health::NewStub(channel_)->Check(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.status();
  }

  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<inference::GenerateResponse>> stream;
    inference::GenerateResponse response;
  };
  std::unique_ptr<Call> generate(int max_tokens, const std::string& key = {}) {
    auto call = std::make_unique<Call>();
    if (!key.empty()) call->context.AddMetadata("authorization", "Bearer " + key);
    inference::GenerateRequest request;
    request.set_model("local");
    request.set_max_tokens(max_tokens);
    call->stream = inference::LLM::NewStub(channel_)->Generate(&call->context, request);
    return call;
  }
  static grpc::Status finish(Call& call) {
    while (call.stream->Read(&call.response)) continue;
    return call.stream->Finish();
  }

  SystemClock clock_;
  std::unique_ptr<Replica> replica_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(ReplicaTest, ServesOnlyOnceATokenCameOut) {
  start_or_fail(options());
  EXPECT_EQ(health(), Status::NOT_SERVING);
  const auto warm = replica_->warm_up();
  ASSERT_TRUE(warm) << warm.error().message;
  EXPECT_EQ(health(), Status::SERVING);
}

TEST_F(ReplicaTest, AnEngineThatMakesNoTokenIsNotServed) {
  ScriptedOptions failing;
  failing.script = *Script::parse("fail \"no token today\"");
  auto started = Replica::start(std::make_unique<ScriptedEngine>(failing, clock_), options());
  ASSERT_TRUE(started);
  const auto warm = (*started)->warm_up();
  ASSERT_FALSE(warm);
  EXPECT_THAT(warm.error().message, HasSubstr("no token today"));
}

TEST_F(ReplicaTest, ListensOnAPortThatOthersCanReach) {
  start_or_fail(options());
  channel_ = grpc::CreateChannel(replica_->address(), grpc::InsecureChannelCredentials());
  const auto call = generate(3);
  EXPECT_TRUE(finish(*call).ok());
  EXPECT_TRUE(call->response.done());
}

TEST_F(ReplicaTest, ADrainLetsRunningStreamsFinishAndRefusesNewOnes) {
  start_or_fail(options());
  // Without a token: the call that makes one might still be counted as running.
  ASSERT_TRUE(replica_->warm_up(false));
  const auto running =
      generate(10'000);  // more than the wire takes ahead: it runs until it is read
  ASSERT_TRUE(running->stream->Read(&running->response));

  EXPECT_EQ(replica_->begin_drain(1h), 1U);
  EXPECT_EQ(health(), Status::NOT_SERVING);
  EXPECT_EQ(finish(*generate(1)).error_code(), grpc::StatusCode::UNAVAILABLE);

  const auto status = finish(*running);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(running->response.done());
  EXPECT_EQ(running->response.completion_tokens(), 10'000U);
  replica_->wait();
}

TEST_F(ReplicaTest, PastTheGraceStreamsEndWithAStatusThatNamesTheFlag) {
  start_or_fail(options());
  const auto running = generate(1'000'000);
  ASSERT_TRUE(running->stream->Read(&running->response));
  replica_->begin_drain(1h);
  replica_->begin_drain(0ms);  // a second signal
  const auto status = finish(*running);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("--drain-grace-ms"));
  replica_->wait();
}

TEST_F(ReplicaTest, ADrainDoesNotWaitForWatchers) {
  start_or_fail(options());
  grpc::ClientContext watching;
  const auto watcher = grpc::health::v1::Health::NewStub(channel_)->Watch(&watching, {});
  Status response;
  ASSERT_TRUE(watcher->Read(&response));
  replica_->begin_drain(1h);
  replica_->wait();
}

TEST_F(ReplicaTest, AnEngineThatIsStuckIsNotServingUntilItComesRound) {
  ScriptedOptions blocking;
  blocking.script = *Script::parse("block");
  ReplicaOptions impatient = options();
  impatient.limits.stall_limit = 300ms;
  auto started = Replica::start(std::make_unique<ScriptedEngine>(blocking, clock_), impatient);
  ASSERT_TRUE(started);
  channel_ = (*started)->in_process_channel();
  ASSERT_TRUE((*started)->warm_up(false));

  grpc::ClientContext watching;
  const auto watcher = grpc::health::v1::Health::NewStub(channel_)->Watch(&watching, {});
  Status response;
  const auto read_until = [&](Status::ServingStatus wanted) {
    while (watcher->Read(&response) && response.status() != wanted) continue;
    return response.status() == wanted;
  };
  EXPECT_TRUE(read_until(Status::SERVING));
  const auto call = generate(1);
  EXPECT_TRUE(read_until(Status::NOT_SERVING));
  call->context.TryCancel();  // which aborts the forward pass
  EXPECT_TRUE(read_until(Status::SERVING));
  static_cast<void>(finish(*call));
  watching.TryCancel();
  static_cast<void>(watcher->Finish());
}

TEST_F(ReplicaTest, APortInUseIsNamedWithItsFlag) {
  start_or_fail(options());
  ReplicaOptions same = options();
  same.listen = replica_->address();
  const auto second = start(same);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr(replica_->address()));
  EXPECT_THAT(second.error().message, HasSubstr("--listen"));
}

template <typename Service, typename Request, typename Response>
struct Reflection {
  // The services' names, and how the call ended.
  static std::pair<std::vector<std::string>, grpc::StatusCode> list(
      const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    const auto stub = Service::NewStub(channel);
    const auto stream = stub->ServerReflectionInfo(&context);
    Request request;
    request.set_list_services("*");
    stream->Write(request);
    stream->WritesDone();
    Response response;
    std::vector<std::string> names;
    while (stream->Read(&response)) {
      for (const auto& service : response.list_services_response().service())
        names.push_back(service.name());
    }
    return {names, stream->Finish().error_code()};
  }
};
using ReflectionV1 = Reflection<grpc::reflection::v1::ServerReflection,
                                grpc::reflection::v1::ServerReflectionRequest,
                                grpc::reflection::v1::ServerReflectionResponse>;
using ReflectionV1Alpha = Reflection<grpc::reflection::v1alpha::ServerReflection,
                                     grpc::reflection::v1alpha::ServerReflectionRequest,
                                     grpc::reflection::v1alpha::ServerReflectionResponse>;

TEST_F(ReplicaTest, ReflectionListsTheServicesInBothVersions) {
  start_or_fail(options());
  EXPECT_THAT(ReflectionV1::list(channel_).first, Contains("inference.LLM"));
  EXPECT_THAT(ReflectionV1Alpha::list(channel_).first, Contains("grpc.health.v1.Health"));
}

TEST_F(ReplicaTest, WithKeysCallsNeedOneAndReflectionIsOff) {
  const TestFolder folder;
  const auto key = add_key(folder.file("keys"), "alice");
  ASSERT_TRUE(key);
  ReplicaOptions with_keys = options();
  with_keys.api_keys = folder.file("keys");
  start_or_fail(with_keys);
  ASSERT_TRUE(replica_->warm_up());
  EXPECT_EQ(health(), Status::SERVING);
  EXPECT_EQ(finish(*generate(1)).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(finish(*generate(1, "wrong")).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(finish(*generate(1, *key)).ok());
  EXPECT_EQ(ReflectionV1::list(channel_).second, grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace sluice
