#include "replica/health.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/metrics.h"
#include "health.grpc.pb.h"
#include "replica/replica_metrics.h"

namespace sluice {
namespace {

namespace v1 = grpc::health::v1;

class Health : public testing::Test {
 protected:
  Health() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&health_.service());
    server_ = builder.BuildAndStart();
    stub_ = v1::Health::NewStub(server_->InProcessChannel({}));
  }

  struct Checked {
    grpc::StatusCode code;
    v1::HealthCheckResponse::ServingStatus status;
  };
  Checked check(const std::string& service) {
    grpc::ClientContext context;
    v1::HealthCheckRequest request;
    request.set_service(service);
    v1::HealthCheckResponse response;
    const auto code = stub_->Check(&context, request, &response).error_code();
    return {code, response.status()};
  }

  std::unique_ptr<grpc::ClientReader<v1::HealthCheckResponse>> watch(grpc::ClientContext& context,
                                                                     const std::string& service) {
    v1::HealthCheckRequest request;
    request.set_service(service);
    return stub_->Watch(&context, request);
  }

  static constexpr std::uint32_t kMaxWatches = 4;

  Metrics series_;
  ReplicaMetrics metrics_{series_};
  HealthService health_{{"inference.LLM"}, kMaxWatches, metrics_};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Health::Stub> stub_;
};

TEST_F(Health, BeginsAsNotServingForTheServerAndEachService) {
  for (const char* service : {"", "inference.LLM"}) {
    EXPECT_EQ(check(service).status, v1::HealthCheckResponse::NOT_SERVING);
    health_.set_serving(true);
    EXPECT_EQ(check(service).status, v1::HealthCheckResponse::SERVING);
    health_.set_serving(false);
  }
}

TEST_F(Health, AnUnknownServiceIsNotFoundAndToAWatcherUnknown) {
  EXPECT_EQ(check("inference.Other").code, grpc::StatusCode::NOT_FOUND);
  grpc::ClientContext context;
  const auto watcher = watch(context, "inference.Other");
  v1::HealthCheckResponse response;
  ASSERT_TRUE(watcher->Read(&response));
  EXPECT_EQ(response.status(), v1::HealthCheckResponse::SERVICE_UNKNOWN);
  context.TryCancel();
  EXPECT_EQ(watcher->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(Health, AWatcherSeesTheStateAndEachChange) {
  grpc::ClientContext context;
  const auto watcher = watch(context, "");
  v1::HealthCheckResponse response;
  for (const bool serving : {false, true, false}) {
    health_.set_serving(serving);
    ASSERT_TRUE(watcher->Read(&response));
    EXPECT_EQ(response.status() == v1::HealthCheckResponse::SERVING, serving);
  }
  context.TryCancel();
  static_cast<void>(watcher->Finish());
}

TEST_F(Health, OnceRetiredItStaysNotServing) {
  health_.set_serving(true);
  health_.retire();
  EXPECT_FALSE(health_.serving());
  health_.set_serving(true);
  EXPECT_FALSE(health_.serving());
}

TEST_F(Health, WatchesCanBeEndedSoThatAServerMayStop) {
  grpc::ClientContext context;
  const auto watcher = watch(context, "");
  v1::HealthCheckResponse response;
  ASSERT_TRUE(watcher->Read(&response));
  health_.end_watches();
  EXPECT_FALSE(watcher->Read(&response));
  EXPECT_EQ(watcher->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);

  grpc::ClientContext late;
  EXPECT_EQ(watch(late, "")->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(Health, WatchesPastTheirBoundAreRefusedByNameUntilOneEnds) {
  v1::HealthCheckResponse response;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::HealthCheckResponse>>> streams;
  for (std::uint32_t i = 0; i < kMaxWatches; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(watch(*contexts.back(), ""));
    ASSERT_TRUE(streams.back()->Read(&response));
  }
  grpc::ClientContext refused_context;
  const auto refused = watch(refused_context, "");
  EXPECT_FALSE(refused->Read(&response));
  const grpc::Status status = refused->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("--max-watches is 4"), std::string::npos);
  EXPECT_EQ(metrics_.health_watches_refused.value(), 1);
  EXPECT_EQ(check("").code, grpc::StatusCode::OK);

  contexts.back()->TryCancel();
  while (metrics_.health_watches.value() == kMaxWatches) std::this_thread::yield();
  grpc::ClientContext context;
  EXPECT_TRUE(watch(context, "")->Read(&response));
  for (const auto& one : contexts) one->TryCancel();
}

TEST_F(Health, AnythingButAShortMessageIsRefused) {
  EXPECT_EQ(check(std::string(100'000, 'x')).code, grpc::StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace sluice
