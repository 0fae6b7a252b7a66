#include "gateway/openai_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/concat.h"
#include "gateway/replica_links.h"
#include "gateway/replica_pool.h"

namespace sluice {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kGrin = "\xF0\x9F\x98\x80";
constexpr std::string_view kHead =
    R"(data: {"id":"chatcmpl-x","object":"chat.completion.chunk","created":1700,"model":"served",)";
constexpr std::string_view kUsage =
    R"({"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,"prompt_tokens_details":)"
    R"({"cached_tokens":4,"cache_write_tokens":2},"completion_tokens_details":)"
    R"({"reasoning_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}})";

AnswerShape streamed(Dialect dialect) {
  AnswerShape shape;
  shape.dialect = dialect;
  shape.stream = true;
  shape.model = "asked";
  shape.settings = R"("tools":[])";
  return shape;
}

AnswerShape whole(Dialect dialect) {
  AnswerShape shape = streamed(dialect);
  shape.stream = false;
  return shape;
}

AnswerEncoder encoder(AnswerShape shape, std::uint32_t choices = 1) {
  return {std::move(shape), "x", std::chrono::system_clock::from_time_t(1700), choices};
}

ReceivedDelta text(std::string_view bytes, std::uint32_t index = 0) {
  ReceivedDelta received;
  received.delta.index = index;
  received.delta.tokens = 1;
  received.delta.bytes = bytes;
  received.prompt_tokens = 7;
  received.model = "served";
  return received;
}

ReceivedDelta last(std::string_view bytes, FinishReason reason = FinishReason::kStop,
                   std::uint32_t index = 0) {
  ReceivedDelta received = text(bytes, index);
  received.delta.finish_reason = reason;
  received.usage = Usage{7, 3, 4, 2, {}};
  return received;
}

TokenLogprob logprob(std::string piece, float value) {
  return {{1, value, piece}, {{1, value, piece}, {2, -3, "\xF0\x9F"}}};
}

std::string all(AnswerEncoder encoder, const std::vector<ReceivedDelta>& deltas) {
  std::string out;
  for (const ReceivedDelta& delta : deltas) encoder.add(delta, 0, out);
  encoder.finish(out);
  return out;
}

// The data of each frame. Fails the test on a frame that is not "data: …" and a blank line.
std::vector<std::string> frames_of(std::string_view stream) {
  std::vector<std::string> frames;
  while (!stream.empty()) {
    const std::size_t end = stream.find("\n\n");
    if (end == std::string_view::npos) {
      ADD_FAILURE() << "a frame without an end";
      return frames;
    }
    std::string_view frame = stream.substr(0, end);
    frame.remove_prefix(std::min(frame.find("data: "), frame.size()));
    EXPECT_EQ(frame.find('\n'), std::string_view::npos);
    frames.emplace_back(frame.substr(std::min<std::size_t>(6, frame.size())));
    stream.remove_prefix(end + 2);
  }
  return frames;
}

// The contents of all chunks of chat, joined.
std::string content_of(std::string_view stream) {
  std::string content;
  for (const std::string& frame : frames_of(stream)) {
    if (frame == "[DONE]") continue;
    const json::value chunk = json::parse(frame);
    for (const json::value& choice : chunk.at("choices").as_array()) {
      const json::object& delta = choice.at("delta").as_object();
      if (const auto* text = delta.if_contains("content")) content += text->as_string().c_str();
    }
  }
  return content;
}

TEST(ChatStream, EachFrameIsExact) {
  const std::string head(kHead);
  EXPECT_EQ(all(encoder(streamed(Dialect::kChat)), {text("Hel\"lo"), last("!")}),
            head + R"("choices":[{"index":0,"delta":{"role":"assistant","content":""},)" +
                "\"finish_reason\":null}]}\n\n" + head +
                R"("choices":[{"index":0,"delta":{"content":"Hel\"lo"},"finish_reason":null}]})" +
                "\n\n" + head +
                R"("choices":[{"index":0,"delta":{"content":"!"},"finish_reason":null}]})" +
                "\n\n" + head + R"("choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})" +
                "\n\n" + "data: [DONE]\n\n");
}

TEST(ChatStream, UsageIsOneLastChunkAndNullBefore) {
  AnswerShape shape = streamed(Dialect::kChat);
  shape.include_usage = true;
  const auto frames =
      frames_of(all(encoder(std::move(shape)), {text("a"), last("", FinishReason::kLength)}));
  ASSERT_EQ(frames.size(), 5U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(frames[i], HasSubstr(R"(}],"usage":null})"));
  EXPECT_THAT(frames[2], HasSubstr(R"("delta":{},"finish_reason":"length")"));
  EXPECT_THAT(frames[3], HasSubstr(concat(R"("choices":[],"usage":)", kUsage, "}")));
  EXPECT_EQ(frames[4], "[DONE]");
}

TEST(ChatStream, WithoutAskingThereIsNoUsage) {
  EXPECT_THAT(all(encoder(streamed(Dialect::kChat)), {last("a")}), Not(HasSubstr("usage")));
}

TEST(ChatStream, AnEmptyAnswerHasItsRoleAndItsEnd) {
  const auto frames = frames_of(all(encoder(streamed(Dialect::kChat)), {last("")}));
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_THAT(frames[0], HasSubstr(R"("role":"assistant","content":"")"));
  EXPECT_THAT(frames[1], HasSubstr(R"("delta":{},"finish_reason":"stop")"));
}

TEST(ChatStream, NothingIsSentBeforeThereIsSomethingToShow) {
  AnswerEncoder chat = encoder(streamed(Dialect::kChat));
  std::string out;
  chat.add(text(""), 0, out);
  chat.add(text(kGrin.substr(0, 2)), 0, out);
  EXPECT_EQ(out, "");
  chat.add(text(kGrin.substr(2)), 0, out);
  EXPECT_EQ(content_of(out), kGrin);
}

TEST(ChatStream, ACharacterCutAnywhereIsTheSameTextInValidFrames) {
  for (std::size_t cut = 0; cut <= kGrin.size(); ++cut) {
    const auto stream = all(encoder(streamed(Dialect::kChat)),
                            {text(kGrin.substr(0, cut)), text(kGrin.substr(cut)), last("z")});
    EXPECT_EQ(content_of(stream), std::string(kGrin) + "z") << cut;
  }
  EXPECT_EQ(content_of(all(encoder(streamed(Dialect::kChat)), {text("a"), last("\xF0\x9F")})),
            "a\xEF\xBF\xBD");
}

TEST(ChatStream, WhatArrivesTogetherLeavesInOneFrame) {
  AnswerEncoder chat = encoder(streamed(Dialect::kChat));
  std::string out;
  const std::vector<ReceivedDelta> first = {text("a"), text("b"), last("c")};
  chat.add(first, 0, out);
  const auto frames = frames_of(out);
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_THAT(frames[1], HasSubstr(R"("content":"abc")"));
}

TEST(ChatStream, ChoicesEachHaveTheirRoleAndTheirEnd) {
  AnswerEncoder chat = encoder(streamed(Dialect::kChat), 2);
  std::string out;
  const std::vector<ReceivedDelta> arrival = {text("a", 0), text("b", 1), text("a", 0),
                                              last("", FinishReason::kStop, 1),
                                              last("", FinishReason::kLength, 0)};
  chat.add(arrival, 0, out);
  chat.finish(out);
  std::vector<std::pair<std::int64_t, std::string>> seen;
  for (const std::string& frame : frames_of(out)) {
    if (frame == "[DONE]") continue;
    const json::value chunk = json::parse(frame);
    const json::value& choice = chunk.at("choices").at(0);
    const json::value& reason = choice.at("finish_reason");
    const bool role = choice.at("delta").as_object().contains("role");
    seen.emplace_back(choice.at("index").as_int64(),
                      reason.is_string() ? reason.as_string().c_str() : (role ? "role" : "text"));
  }
  using Seen = std::pair<std::int64_t, std::string>;
  EXPECT_THAT(seen, ElementsAre(Seen{0, "role"}, Seen{0, "text"}, Seen{1, "role"}, Seen{1, "text"},
                                Seen{0, "text"}, Seen{1, "stop"}, Seen{0, "length"}));
}

TEST(ChatStream, LogprobsGoWithTheirText) {
  ReceivedDelta received = text("a");
  received.delta.logprobs.push_back(logprob("a", -0.5F));
  EXPECT_THAT(
      all(encoder(streamed(Dialect::kChat)), {received, last("")}),
      HasSubstr(R"("delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.5,)"
                R"("bytes":[97],"top_logprobs":[{"token":"a","logprob":-0.5,"bytes":[97]},)"
                R"({"token":"bytes:\\xf0\\x9f","logprob":-3,"bytes":[240,159]}]}],"refusal":null},)"
                R"("finish_reason":null)"));
}

TEST(ChatStream, AFailureIsTheLastFrame) {
  AnswerEncoder chat = encoder(streamed(Dialect::kChat));
  std::string out;
  chat.add(text("a"), 0, out);
  out.clear();
  chat.fail(to_api_error({Code::kUnavailable, "the replica is gone"}), out);
  EXPECT_EQ(out,
            "data: {\"error\":{\"message\":\"the replica is gone\",\"type\":\"server_error\","
            "\"param\":null,\"code\":\"no_replica_available\"}}\n\n");
}

TEST(ChatStream, TheTierIsEchoedIfItWasAskedFor) {
  AnswerShape shape = streamed(Dialect::kChat);
  shape.service_tier = "flex";
  for (const std::string& frame : frames_of(all(encoder(std::move(shape)), {last("a")}))) {
    if (frame == "[DONE]") continue;
    EXPECT_THAT(frame, HasSubstr(R"("service_tier":"flex","choices")"));
  }
}

TEST(ChatWhole, TheBodyIsExact) {
  AnswerEncoder chat = encoder(whole(Dialect::kChat));
  std::string out;
  chat.add(text("Hel\nlo \xF0"), 0, out);
  EXPECT_EQ(out, "");
  chat.add(last("\x9F\x98\x80", FinishReason::kLength), 0, out);
  chat.finish(out);
  EXPECT_EQ(
      out, concat(R"({"id":"chatcmpl-x","object":"chat.completion","created":1700,)"
                  R"("model":"served","choices":[{"index":0,"message":{"role":"assistant",)"
                  R"("content":"Hel\nlo )",
                  kGrin, R"(","refusal":null},"logprobs":null,"finish_reason":"length"}],"usage":)",
                  kUsage, "}"));
}

TEST(ChatWhole, StreamedAndWholeTextAreTheSame) {
  const std::string bytes = "a\xE0\xB8\x81\xF0\x9F\x91\xA9\xE2\x80\x8D\xFF\xD8\xB4\xE4\xBD";
  std::vector<ReceivedDelta> deltas;
  for (const char byte : bytes) deltas.push_back(text(std::string_view(&byte, 1)));
  deltas.push_back(last(""));
  const json::value answer = json::parse(all(encoder(whole(Dialect::kChat)), deltas));
  EXPECT_EQ(content_of(all(encoder(streamed(Dialect::kChat)), deltas)),
            answer.at("choices").at(0).at("message").at("content").as_string().c_str());
}

TEST(CompletionStream, EachFrameIsExact) {
  AnswerShape shape = streamed(Dialect::kCompletion);
  shape.echo = {"Say: "};
  const std::string head =
      R"(data: {"id":"cmpl-x","object":"text_completion","created":1700,"model":"served",)";
  EXPECT_EQ(
      all(encoder(std::move(shape)), {text("a"), last("b")}),
      head + R"("choices":[{"index":0,"text":"Say: a","logprobs":null,"finish_reason":null}]})" +
          "\n\n" + head +
          R"("choices":[{"index":0,"text":"b","logprobs":null,"finish_reason":null}]})" + "\n\n" +
          head + R"("choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"stop"}]})" +
          "\n\ndata: [DONE]\n\n");
}

TEST(CompletionWhole, LogprobsAreParallelListsWithOffsets) {
  ReceivedDelta first = text("\xC3\xA4");
  first.delta.logprobs.push_back(logprob("\xC3\xA4", -0.5F));
  ReceivedDelta second = text("b");
  second.delta.logprobs.push_back(logprob("b", -1));
  EXPECT_THAT(all(encoder(whole(Dialect::kCompletion)), {first, second, last("")}),
              HasSubstr("\"text\":\"\xC3\xA4"
                        R"(b","logprobs":{"tokens":["ä","b"],"token_logprobs":[-0.5,-1],)"
                        R"("top_logprobs":[{"ä":-0.5,"bytes:\\xf0\\x9f":-3},)"
                        R"({"b":-1,"bytes:\\xf0\\x9f":-3}],"text_offset":[0,1]},)"
                        R"("finish_reason":"stop")"));
}

TEST(CompletionWhole, EachPromptsChoicesEchoItAndUsageIsOfAllTogether) {
  AnswerShape shape = whole(Dialect::kCompletion);
  shape.echo = {"one ", "two "};
  AnswerEncoder completion = encoder(std::move(shape), 4);
  std::string out;
  for (const std::uint32_t first : {0U, 2U}) {
    completion.add(text("x", 0), first, out);
    completion.add(text("y", 1), first, out);
    EXPECT_EQ(completion.usage().completion_tokens, first == 0 ? 2U : 5U);
    ReceivedDelta end = last("", FinishReason::kStop, 0);
    end.usage.reset();
    completion.add(end, first, out);
    completion.add(last("", FinishReason::kStop, 1), first, out);
  }
  EXPECT_EQ(completion.usage().prompt_tokens, 14U);
  EXPECT_EQ(completion.usage().completion_tokens, 6U);
  EXPECT_EQ(completion.usage().cached_tokens, 8U);
  completion.finish(out);
  const json::value answer = json::parse(out);
  std::vector<std::string> texts;
  for (const json::value& choice : answer.at("choices").as_array()) {
    EXPECT_EQ(choice.at("index").as_int64(), static_cast<std::int64_t>(texts.size()));
    texts.emplace_back(choice.at("text").as_string().c_str());
  }
  EXPECT_THAT(texts, ElementsAre("one x", "one y", "two x", "two y"));
}

TEST(AnswerEncoder, ADeltaOfAChoiceThatThereIsNotIsLeftOut) {
  AnswerEncoder chat = encoder(streamed(Dialect::kChat));
  std::string out;
  chat.add(text("a", 7), 0, out);
  EXPECT_EQ(out, "");
}

TEST(ResponsesStream, TheEventsAreOpenAisInOrderAndNumbered) {
  const std::string stream = all(encoder(streamed(Dialect::kResponses)), {text("Hi"), last("!")});
  const std::vector<std::string> expected = {
      "response.created",           "response.in_progress",
      "response.output_item.added", "response.content_part.added",
      "response.output_text.delta", "response.output_text.delta",
      "response.output_text.done",  "response.content_part.done",
      "response.output_item.done",  "response.completed"};
  const auto frames = frames_of(stream);
  ASSERT_EQ(frames.size(), expected.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const json::value event = json::parse(frames[i]);
    EXPECT_EQ(event.at("type").as_string(), expected[i]);
    EXPECT_EQ(event.at("sequence_number").as_int64(), static_cast<std::int64_t>(i));
    EXPECT_THAT(stream, HasSubstr(concat("event: ", expected[i], "\ndata: {\"type\":")));
  }
  EXPECT_THAT(stream, Not(HasSubstr("[DONE]")));
}

TEST(ResponsesStream, ADeltaIsExact) {
  EXPECT_THAT(all(encoder(streamed(Dialect::kResponses)), {text("H\"i"), last("")}),
              HasSubstr("event: response.output_text.delta\n"
                        R"(data: {"type":"response.output_text.delta","item_id":"msg_x",)"
                        R"("output_index":0,"content_index":0,"delta":"H\"i","logprobs":[],)"
                        "\"sequence_number\":4}\n\n"));
}

TEST(ResponsesStream, TheLastEventHoldsTheWholeResponse) {
  const std::vector<ReceivedDelta> deltas = {text("Hi"), last("!", FinishReason::kLength)};
  const auto frames = frames_of(all(encoder(streamed(Dialect::kResponses)), deltas));
  const json::value end = json::parse(frames.back());
  EXPECT_EQ(end.at("type").as_string(), "response.incomplete");
  EXPECT_EQ(end.at("response"), json::parse(all(encoder(whole(Dialect::kResponses)), deltas)));
}

TEST(ResponsesWhole, TheBodyIsExact) {
  AnswerShape shape = whole(Dialect::kResponses);
  shape.service_tier = "default";
  EXPECT_EQ(
      all(encoder(std::move(shape)), {last("Hi", FinishReason::kLength)}),
      R"({"id":"resp_x","object":"response","created_at":1700,"status":"incomplete",)"
      R"("background":false,"error":null,"incomplete_details":{"reason":"max_output_tokens"},)"
      R"("model":"served","tools":[],"service_tier":"default","output":[{"id":"msg_x",)"
      R"("type":"message","status":"incomplete","role":"assistant","content":[)"
      R"({"type":"output_text","annotations":[],"logprobs":[],"text":"Hi"}]}],"usage":)"
      R"({"input_tokens":7,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},)"
      R"("output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":10}})");
}

TEST(ResponsesStream, AFailureIsAFailedResponse) {
  for (const bool begun : {false, true}) {
    AnswerEncoder responses = encoder(streamed(Dialect::kResponses));
    std::string out;
    if (begun) responses.add(text("a"), 0, out);
    responses.fail(to_api_error({Code::kResourceExhausted, "client not reading"}), out);
    const auto frames = frames_of(out);
    EXPECT_EQ(json::parse(frames.front()).at("type").as_string(), "response.created");
    const json::value end = json::parse(frames.back());
    EXPECT_EQ(end.at("type").as_string(), "response.failed");
    EXPECT_EQ(end.at("response").at("status").as_string(), "failed");
    EXPECT_EQ(end.at("response").at("error").at("code").as_string(), "rate_limit_exceeded");
    EXPECT_EQ(end.at("response").at("output").as_array().size(), begun ? 1U : 0U);
  }
}

TEST(Lists, EmbeddingsAreNumbersOrLittleEndianFloats) {
  EmbedAnswer answer;
  answer.embeddings = {{1.0F, -0.5F}, {0.25F, 0}};
  answer.prompt_tokens = 3;
  answer.model = "served";
  EXPECT_EQ(embeddings_json(answer, false),
            R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[1,-0.5]},)"
            R"({"object":"embedding","index":1,"embedding":[0.25,0]}],"model":"served",)"
            R"("usage":{"prompt_tokens":3,"total_tokens":3}})");
  EXPECT_THAT(embeddings_json(answer, true), HasSubstr(R"("embedding":"AACAPwAAAL8=")"));
}

TEST(Lists, ModelsAreEveryNameThatIsAccepted) {
  const ModelEntry model{"smol", {"local"}, 2048, false};
  const std::string smol =
      R"({"id":"smol","object":"model","created":0,"owned_by":"sluice","root":"smol",)"
      R"("max_model_len":2048})";
  EXPECT_EQ(model_json(model), smol);
  EXPECT_EQ(models_json({model}),
            concat(R"({"object":"list","data":[)", smol,
                   R"(,{"id":"local","object":"model","created":0,"owned_by":"sluice",)"
                   R"("root":"smol","max_model_len":2048}]})"));
  EXPECT_EQ(models_json({}), R"({"object":"list","data":[]})");
}

}  // namespace
}  // namespace sluice
