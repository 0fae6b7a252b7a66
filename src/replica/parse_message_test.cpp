#include "replica/parse_message.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "inference.pb.h"

namespace sluice {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::HasSubstr;

// In slices of `slice_bytes`, as they come from the wire.
grpc::ByteBuffer buffer(std::string_view bytes, std::size_t slice_bytes = 8000) {
  std::vector<grpc::Slice> slices;
  while (!bytes.empty()) {
    slices.emplace_back(std::string(bytes.substr(0, slice_bytes)));
    bytes.remove_prefix(std::min(slice_bytes, bytes.size()));
  }
  return {slices.data(), slices.size()};
}

std::string repeated(std::string_view piece, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += piece;
  return out;
}

std::string refusal(const grpc::ByteBuffer& bytes, google::protobuf::Message& out,
                    const Limits& limits = {}) {
  const auto parsed = parse_message(bytes, limits, out);
  if (parsed) return "parsed";
  EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
  return parsed.error().message;
}

TEST(ParseMessage, WhatWasSerializedComesBackWhateverTheSlices) {
  inference::GenerateRequest request;
  request.set_model("local");
  for (int i = 0; i < 1000; ++i) {
    inference::Message& message = *request.add_messages();
    message.set_role("user");
    message.set_content(std::string(100, static_cast<char>(i)));
    (*request.mutable_logit_bias())[i] = 1;
  }
  const std::string bytes = request.SerializeAsString();
  ASSERT_GT(bytes.size(), kFreeMessageBytes);
  for (const std::size_t slice : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
    inference::GenerateRequest parsed;
    ASSERT_TRUE(parse_message(buffer(bytes, slice), Limits{}, parsed));
    EXPECT_TRUE(MessageDifferencer::Equals(parsed, request));
  }
}

TEST(ParseMessage, AnEmptyMessageIsAMessageAndNoneIsNot) {
  inference::GenerateRequest request;
  const grpc::Slice nothing;
  EXPECT_TRUE(parse_message(grpc::ByteBuffer(&nothing, 1), Limits{}, request));
  EXPECT_THAT(refusal(grpc::ByteBuffer(), request), HasSubstr("no inference.GenerateRequest"));
}

TEST(ParseMessage, MoreBytesThanTheLimitAreRefusedByName) {
  Limits limits;
  limits.max_message_bytes = 10;
  inference::GenerateRequest request;
  const auto parsed = parse_message(buffer(std::string(11, '\0')), limits, request);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, Code::kResourceExhausted);
  EXPECT_THAT(parsed.error().message, HasSubstr("--max-message-bytes is 10"));
}

TEST(ParseMessage, EmptyMessagesByTheMillionAreRefusedUnparsed) {
  inference::GenerateRequest request;
  const std::string why =
      refusal(buffer(repeated(std::string_view("\x12\0", 2), 5'000'000)), request);
  EXPECT_THAT(why, HasSubstr("GenerateRequest holds more than 262144"));
  EXPECT_THAT(why, HasSubstr("--max-message-values"));
  EXPECT_EQ(request.messages_size(), 0);
}

TEST(ParseMessage, ValuesAreCountedWhereverTheyStand) {
  Limits limits;
  limits.max_message_values = 40'000;
  const auto many = [&limits](std::string_view bytes, google::protobuf::Message& out) {
    EXPECT_THAT(refusal(buffer(bytes), out, limits), HasSubstr("--max-message-values"));
  };
  // Nested: parts of one message.
  inference::GenerateRequest nested;
  inference::Message& message = *nested.add_messages();
  for (int i = 0; i < 40'000; ++i) message.add_parts();
  inference::GenerateRequest request;
  many(nested.SerializeAsString(), request);
  // Packed: cancels.
  inference::AttachRequest packed;
  for (std::uint64_t i = 0; i < 70'000; ++i) packed.add_cancels(i);
  inference::AttachRequest attach;
  many(packed.SerializeAsString(), attach);
  // Packed, of fixed size.
  inference::Embedding embedding;
  for (int i = 0; i < 40'001; ++i) embedding.add_values(1);
  inference::Embedding values;
  many(embedding.SerializeAsString(), values);
  // Of a field that is not known, and within such a group.
  many(repeated("\xf8\x7f\x01", 40'001), request);
  many("\xfb\x7f" + repeated("\x08\x01", 40'001) + "\xfc\x7f", request);
}

TEST(ParseMessage, LongTextsAreFewValues) {
  inference::GenerateRequest request;
  request.set_model("local");
  request.set_prompt(std::string(1 << 20, '\x12'));
  Limits limits;
  limits.max_message_values = 2;
  inference::GenerateRequest parsed;
  EXPECT_TRUE(parse_message(buffer(request.SerializeAsString()), limits, parsed));
}

TEST(ParseMessage, BytesThatAreNoMessageAreRefusedByTheType) {
  inference::GenerateRequest request;
  const std::string open_group = repeated("\xfb\x7f", 70'000);
  for (const std::string& bytes :
       {std::string("\xff\xff\xff"), std::string("\x12\x05\x01"), std::string("\0", 1),
        std::string("\x0f"), std::string("\x0c"), open_group, repeated("\x12\x7f", 40'000),
        "\x0a\xff\xff\xff\xff\x07" + std::string(70'000, 'a')}) {
    EXPECT_THAT(refusal(buffer(bytes), request), HasSubstr("not a valid inference.GenerateRequest"))
        << bytes.size();
  }
}

TEST(ParseMessage, TextThatIsNotUtf8IsRefusedByItsField) {
  inference::GenerateRequest request;
  EXPECT_EQ(refusal(buffer("\x0a\x02\xc3\x28"), request), "model is not valid UTF-8");
  // messages { role: "user" } messages { role: "\xff" }, in a short and in a long request.
  const std::string bytes("\x12\x06\x0a\x04user\x12\x03\x0a\x01\xff");
  EXPECT_EQ(refusal(buffer(bytes), request), "messages[1].role is not valid UTF-8");
  const std::string longer = bytes + "\xb2\x01\x80\x80\x04" + std::string(65'536, 'a');
  EXPECT_EQ(refusal(buffer(longer), request), "messages[1].role is not valid UTF-8");
  EXPECT_EQ(refusal(buffer("\x4a\x01\x61\x4a\x01\xff"), request), "stop[1] is not valid UTF-8");
}

}  // namespace
}  // namespace sluice
