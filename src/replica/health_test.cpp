#include "replica/health.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "health.grpc.pb.h"

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

  HealthService health_{{"inference.LLM"}};
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

}  // namespace
}  // namespace sluice
