// The contract that Sluice was asked for, and ours: the same bytes mean the same to both.
#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "contract/wire.h"
#include "inference.pb.h"

namespace sluice {
namespace {

namespace pb = google::protobuf;

constexpr const char* kMission = R"(
syntax = "proto3";

package inference;

service LLM {
  rpc Generate(GenerateRequest) returns (stream GenerateResponse);
}

message GenerateRequest {
  string model = 1;
  repeated Message messages = 2;
  float temperature = 3;
  int32 max_tokens = 4;
}

message Message {
  string role = 1;
  bytes content = 2;
}

message GenerateResponse {
  bytes delta = 1;
  bool done = 2;
  uint32 prompt_tokens = 3;
  uint32 completion_tokens = 4;
}
)";

class Mission : public testing::Test {
 protected:
  Mission() {
    pb::io::ArrayInputStream bytes(kMission, static_cast<int>(std::string(kMission).size()));
    pb::io::Tokenizer tokenizer(&bytes, nullptr);
    pb::FileDescriptorProto file;
    EXPECT_TRUE(pb::compiler::Parser().Parse(&tokenizer, &file));
    file.set_name("mission.proto");
    file_ = pool_.BuildFile(file);
  }

  // A message of the mission's type, from its text format.
  std::unique_ptr<pb::Message> make(const std::string& type, const std::string& text) {
    const pb::Descriptor* const descriptor = file_->FindMessageTypeByName(type);
    std::unique_ptr<pb::Message> message(factory_.GetPrototype(descriptor)->New());
    EXPECT_TRUE(pb::TextFormat::ParseFromString(text, message.get())) << text;
    return message;
  }

  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_{&pool_};
  const pb::FileDescriptor* file_ = nullptr;
};

TEST_F(Mission, ItsRequestIsReadAsItWasMeant) {
  const auto request = make("GenerateRequest", R"(
    model: "local" temperature: 0.5 max_tokens: 50
    messages { role: "system" content: "Be brief." }
    messages { role: "user" content: "\xE4\xBD\xA0" })");
  inference::GenerateRequest ours;
  ASSERT_TRUE(ours.ParseFromString(request->SerializeAsString()));
  const Result<GenerationRequest> taken = from_wire(std::move(ours));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->model, "local");
  EXPECT_EQ(taken->sampling.temperature, 0.5F);
  EXPECT_EQ(taken->stopping.max_tokens, 50);
  ASSERT_EQ(taken->prompt.messages.size(), 2U);
  EXPECT_EQ(taken->prompt.messages[0].role, Role::kSystem);
  EXPECT_EQ(taken->prompt.messages[1].parts.at(0).bytes, "\xE4\xBD\xA0");
}

TEST_F(Mission, ItsResponseReadsOurs) {
  ResponseEncoder encoder("a model", 7, 1);
  inference::GenerateResponse ours;
  Delta delta;
  delta.tokens = 2;
  delta.bytes = "\xF0\x9F";
  delta.finish_reason = FinishReason::kLength;
  encoder.encode(std::move(delta), ours);
  Usage usage;
  usage.prompt_tokens = 7;
  usage.completion_tokens = 2;
  encoder.encode_end(usage, ours);

  const auto theirs = make("GenerateResponse", "");
  ASSERT_TRUE(theirs->ParseFromString(ours.SerializeAsString()));
  const auto expected = make("GenerateResponse", R"(
    delta: "\xF0\x9F" done: true prompt_tokens: 7 completion_tokens: 2)");
  theirs->DiscardUnknownFields();
  EXPECT_EQ(theirs->DebugString(), expected->DebugString());
}

TEST_F(Mission, WhatItWritesIsTheSameAfterOurHands) {
  const auto request = make("GenerateRequest", R"(
    model: "m" temperature: 2 max_tokens: -1 messages { role: "user" content: "\x00\xFF" })");
  inference::GenerateRequest our_request;
  ASSERT_TRUE(our_request.ParseFromString(request->SerializeAsString()));
  EXPECT_EQ(our_request.SerializeAsString(), request->SerializeAsString());

  const auto response = make("GenerateResponse", R"(
    delta: "tok1 " done: true prompt_tokens: 4294967295 completion_tokens: 1)");
  inference::GenerateResponse our_response;
  ASSERT_TRUE(our_response.ParseFromString(response->SerializeAsString()));
  EXPECT_EQ(our_response.SerializeAsString(), response->SerializeAsString());
}

TEST_F(Mission, ItsMethodIsOurs) {
  const auto* const theirs = file_->FindServiceByName("LLM")->FindMethodByName("Generate");
  const auto* const ours =
      pb::DescriptorPool::generated_pool()->FindMethodByName("inference.LLM.Generate");
  ASSERT_NE(ours, nullptr);
  EXPECT_EQ(ours->full_name(), theirs->full_name());
  EXPECT_EQ(ours->client_streaming(), theirs->client_streaming());
  EXPECT_EQ(ours->server_streaming(), theirs->server_streaming());
  EXPECT_EQ(ours->input_type()->full_name(), theirs->input_type()->full_name());
  EXPECT_EQ(ours->output_type()->full_name(), theirs->output_type()->full_name());
}

}  // namespace
}  // namespace sluice
