#include "replica/service.h"

#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "replica/test_replica.h"

namespace sluice {
namespace {

using testing::HasSubstr;

using Invoke = std::function<grpc::Status(TestReplica&, grpc::ClientContext&)>;

// Every method of both services, with a request that is served.
std::vector<std::pair<std::string, Invoke>> every_method() {
  return {
      {"Generate",
       [](TestReplica& replica, grpc::ClientContext& context) {
         inference::GenerateRequest request;
         request.set_model("local");
         request.set_max_tokens(1);
         const auto stream = replica.llm().Generate(&context, request);
         inference::GenerateResponse response;
         while (stream->Read(&response)) continue;
         return stream->Finish();
       }},
      {"Embed",
       [](TestReplica& replica, grpc::ClientContext& context) {
         inference::EmbedRequest request;
         request.set_model("local");
         request.add_inputs("hi");
         inference::EmbedResponse response;
         return replica.llm().Embed(&context, request, &response);
       }},
      {"CountTokens",
       [](TestReplica& replica, grpc::ClientContext& context) {
         inference::CountTokensRequest request;
         request.set_model("local");
         inference::CountTokensResponse response;
         return replica.llm().CountTokens(&context, request, &response);
       }},
      {"Attach",
       [](TestReplica& replica, grpc::ClientContext& context) {
         const auto stream = replica.replica().Attach(&context);
         stream->WritesDone();
         inference::StepBatch batch;
         while (stream->Read(&batch)) continue;
         return stream->Finish();
       }},
      {"Describe",
       [](TestReplica& replica, grpc::ClientContext& context) {
         inference::DescribeResponse response;
         return replica.replica().Describe(&context, {}, &response);
       }},
      {"WatchLoad",
       [](TestReplica& replica, grpc::ClientContext& context) {
         const auto stream = replica.replica().WatchLoad(&context, {});
         inference::Load load;
         if (stream->Read(&load)) {
           context.TryCancel();
           static_cast<void>(stream->Finish());
           return grpc::Status();
         }
         return stream->Finish();
       }},
      {"Drain",
       [](TestReplica& replica, grpc::ClientContext& context) {
         inference::DrainResponse response;
         return replica.replica().Drain(&context, {}, &response);
       }},
  };
}

std::unique_ptr<KeyRing> key_ring(const std::string& key, const std::string& limits = "trusted") {
  const std::string path =
      testing::TempDir() + "/keys." + std::to_string(std::hash<std::string>()(key));
  std::ofstream file(path);
  constexpr const char* kDigits = "0123456789abcdef";
  file << "tester ";
  for (const std::uint8_t byte : sha256(key)) file << kDigits[byte >> 4] << kDigits[byte & 15];
  file << ' ' << limits << '\n';
  file.close();
  auto keys = KeyRing::load(path);
  EXPECT_TRUE(keys) << keys.error().message;
  return std::move(*keys);
}

TEST(Services, EveryMethodWantsAKeyAndMissingAndWrongReadTheSame) {
  const std::string key = make_key();
  TestReplica replica("", {}, key_ring(key));
  replica.run_engine();
  for (const auto& [name, invoke] : every_method()) {
    std::vector<std::string> refusals;
    for (const std::string& header :
         {std::string(), "Bearer " + key + "x", "Basic " + key, std::string("Bearer ")}) {
      grpc::ClientContext context;
      if (!header.empty()) context.AddMetadata("authorization", header);
      const grpc::Status status = invoke(replica, context);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << name;
      refusals.push_back(status.error_message());
    }
    EXPECT_EQ(std::count(refusals.begin(), refusals.end(), refusals.front()), 4) << name;
    grpc::ClientContext context;
    context.AddMetadata("authorization", "bearer " + key);
    EXPECT_TRUE(invoke(replica, context).ok()) << name;
  }
}

TEST(Services, AKeyForOtherModelsIsRefusedWhereverAModelIsNamed) {
  const std::string key = make_key();
  TestReplica replica("", {}, key_ring(key, "models=other"));
  replica.run_engine();
  for (const auto& [name, invoke] : every_method()) {
    if (name == "Attach" || name == "Describe" || name == "WatchLoad" || name == "Drain") continue;
    grpc::ClientContext context;
    context.AddMetadata("authorization", "bearer " + key);
    EXPECT_EQ(invoke(replica, context).error_code(), grpc::StatusCode::PERMISSION_DENIED) << name;
  }
}

// A call within the process comes from no address.
TEST(Services, WithoutKeysEveryMethodIsOpenButDrainToStrangers) {
  TestReplica replica;
  replica.run_engine();
  for (const auto& [name, invoke] : every_method()) {
    grpc::ClientContext context;
    const auto expected =
        name == "Drain" ? grpc::StatusCode::PERMISSION_DENIED : grpc::StatusCode::OK;
    EXPECT_EQ(invoke(replica, context).error_code(), expected) << name;
  }
}

TEST(Services, CountTokensCountsAsGenerateDoes) {
  TestReplica replica;
  replica.run_engine();
  inference::CountTokensRequest count;
  count.set_model("local");
  inference::Message& message = *count.add_messages();
  message.set_role("user");
  message.set_content("hello");
  grpc::ClientContext context;
  inference::CountTokensResponse counted;
  ASSERT_TRUE(replica.llm().CountTokens(&context, count, &counted).ok());
  EXPECT_GT(counted.context_tokens(), 0);

  inference::GenerateRequest generate;
  generate.set_model("local");
  generate.set_max_tokens(1);
  *generate.add_messages() = message;
  grpc::ClientContext generate_context;
  const auto stream = replica.llm().Generate(&generate_context, generate);
  inference::GenerateResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.prompt_tokens(), counted.tokens());
}

TEST(Services, EmbedAnswersEachInputInOrder) {
  TestReplica replica;
  inference::EmbedRequest request;
  request.set_model("local");
  for (const char* input : {"a", "b", "a"}) request.add_inputs(input);
  grpc::ClientContext context;
  inference::EmbedResponse response;
  ASSERT_TRUE(replica.llm().Embed(&context, request, &response).ok());
  ASSERT_EQ(response.embeddings_size(), 3);
  const auto values = [&response](int i) {
    const auto& all = response.embeddings(i).values();
    return std::vector<float>(all.begin(), all.end());
  };
  EXPECT_EQ(values(0), values(2));
  EXPECT_NE(values(0), values(1));
}

TEST(Services, EmbedRefusesBadInputsByName) {
  Limits limits;
  limits.max_embed_inputs = 2;
  TestReplica replica("", limits);
  const auto embed = [&replica](const std::vector<std::string>& inputs) {
    inference::EmbedRequest request;
    request.set_model("local");
    for (const std::string& input : inputs) request.add_inputs(input);
    grpc::ClientContext context;
    inference::EmbedResponse response;
    return replica.llm().Embed(&context, request, &response);
  };
  EXPECT_THAT(embed({}).error_message(), HasSubstr("inputs has 0 entries"));
  EXPECT_THAT(embed({"a", "b", "c"}).error_message(), HasSubstr("--max-embed-inputs"));
  EXPECT_THAT(embed({"a", "\xff"}).error_message(), HasSubstr("inputs[1]"));
}

TEST(Services, EmbedsPastTheirBoundAreRefusedByName) {
  Limits limits;
  limits.max_queued_embeds = 1;
  TestReplica replica("", limits);
  replica.engine().hold_embedder();
  inference::EmbedRequest request;
  request.set_model("local");
  request.add_inputs("a");

  grpc::ClientContext running_context;
  inference::EmbedResponse running_response;
  grpc::Status running;
  std::thread first(
      [&] { running = replica.llm().Embed(&running_context, request, &running_response); });
  replica.engine().wait_for_embedder(1);
  grpc::ClientContext waiting_context;
  inference::EmbedResponse waiting_response;
  grpc::Status waiting;
  std::thread second(
      [&] { waiting = replica.llm().Embed(&waiting_context, request, &waiting_response); });
  while (replica.metrics().embeds_queued.value() < 1) std::this_thread::yield();

  grpc::ClientContext refused_context;
  inference::EmbedResponse refused_response;
  const grpc::Status refused = replica.llm().Embed(&refused_context, request, &refused_response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("--max-queued-embeds"));

  // Cancelled in the middle of a pass, and while waiting.
  running_context.TryCancel();
  waiting_context.TryCancel();
  first.join();
  second.join();
  EXPECT_EQ(running.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(waiting.error_code(), grpc::StatusCode::CANCELLED);
  replica.wait_for_calls(0);
}

TEST(Services, DescribeNamesTheModelAndEveryBound) {
  TestReplica replica;
  grpc::ClientContext context;
  inference::DescribeResponse response;
  ASSERT_TRUE(replica.replica().Describe(&context, {}, &response).ok());
  ASSERT_EQ(response.models_size(), 1);
  EXPECT_EQ(response.models(0).engine(), "scripted");
  EXPECT_EQ(response.models(0).aliases(0), "local");
  EXPECT_TRUE(response.attach());
  std::map<std::string, std::uint64_t> bounds;
  for (const inference::Bound& bound : response.bounds()) bounds[bound.name()] = bound.value();
  EXPECT_EQ(bounds["max-queued-requests"], Limits{}.max_queued_requests);
  EXPECT_EQ(bounds["drain-grace-ms"], 30'000);
}

TEST(Services, WatchLoadSendsTheLoadAtOnceAndWhenItChanges) {
  TestReplica replica;
  grpc::ClientContext context;
  inference::WatchLoadRequest request;
  request.set_interval_ms(10);
  const auto stream = replica.replica().WatchLoad(&context, request);
  inference::Load load;
  ASSERT_TRUE(stream->Read(&load));
  EXPECT_EQ(load.waiting(), 0);

  inference::GenerateRequest generate;
  generate.set_model("local");
  grpc::ClientContext generate_context;
  const auto tokens = replica.llm().Generate(&generate_context, generate);
  tokens->WaitForInitialMetadata();
  ASSERT_TRUE(stream->Read(&load));
  EXPECT_EQ(load.waiting(), 1);
}

TEST(Services, WatchLoadRefusesAnIntervalThatIsTooShort) {
  TestReplica replica;
  grpc::ClientContext context;
  inference::WatchLoadRequest request;
  request.set_interval_ms(9);
  const auto stream = replica.replica().WatchLoad(&context, request);
  inference::Load load;
  EXPECT_FALSE(stream->Read(&load));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(Services, WatchesPastTheirBoundAreRefusedByName) {
  Limits limits;
  limits.max_watches = 1;
  TestReplica replica("", limits);
  inference::Load load;
  grpc::ClientContext first_context;
  const auto first = replica.replica().WatchLoad(&first_context, {});
  ASSERT_TRUE(first->Read(&load));
  grpc::ClientContext second_context;
  const auto second = replica.replica().WatchLoad(&second_context, {});
  EXPECT_FALSE(second->Read(&load));
  const grpc::Status refused = second->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("--max-watches"));
  EXPECT_EQ(second_context.GetServerTrailingMetadata().count("x-request-id"), 1);

  first_context.TryCancel();
  while (replica.metrics().load_watches.value() > 0) std::this_thread::yield();
  grpc::ClientContext third_context;
  const auto third = replica.replica().WatchLoad(&third_context, {});
  EXPECT_TRUE(third->Read(&load));
  third_context.TryCancel();
}

// Bytes that no stub would send.
TEST(Services, WhatIsNoMessageIsRefusedOnceTheCallerIsKnown) {
  const std::string key = make_key();
  TestReplica replica("", {}, key_ring(key));
  replica.run_engine();
  grpc::GenericStub stub(replica.channel());
  for (const char* method : {"LLM/Generate", "LLM/Embed", "LLM/CountTokens", "Replica/Describe",
                             "Replica/WatchLoad", "Replica/Drain"}) {
    for (const bool known : {false, true}) {
      const grpc::Slice slice(std::string("\xff\xff\xff"));
      const grpc::ByteBuffer request(&slice, 1);
      grpc::ByteBuffer response;
      grpc::ClientContext context;
      if (known) context.AddMetadata("authorization", "Bearer " + key);
      std::promise<grpc::Status> ended;
      stub.UnaryCall(&context, std::string("/inference.") + method, {}, &request, &response,
                     [&ended](grpc::Status status) { ended.set_value(std::move(status)); });
      const grpc::Status status = ended.get_future().get();
      EXPECT_EQ(status.error_code(),
                known ? grpc::StatusCode::INVALID_ARGUMENT : grpc::StatusCode::UNAUTHENTICATED)
          << method;
      if (known) {
        EXPECT_THAT(status.error_message(), HasSubstr("not a valid inference.")) << method;
      }
      EXPECT_EQ(context.GetServerTrailingMetadata().count("x-request-id"), 1) << method;
    }
  }
}

TEST(Services, DrainPassesTheGraceOn) {
  const std::string key = make_key();
  TestReplica replica("", {}, key_ring(key));
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + key);
  inference::DrainRequest request;
  request.set_grace_ms(1234);
  inference::DrainResponse response;
  ASSERT_TRUE(replica.replica().Drain(&context, request, &response).ok());
  EXPECT_EQ(replica.drain_grace, std::chrono::milliseconds(1234));
}

}  // namespace
}  // namespace sluice
