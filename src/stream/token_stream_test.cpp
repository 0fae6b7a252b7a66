#include "stream/token_stream.h"

#include <gtest/gtest.h>

#include <thread>

namespace sluice {
namespace {

class TokenStreamTest : public testing::Test {
 protected:
  std::pair<StreamWriter, StreamReader> make(std::uint32_t max_deltas = 4,
                                             std::uint32_t max_bytes = 100) {
    return make_token_stream({.id = RequestId{7},
                              .prompt_tokens = 3,
                              .max_deltas = max_deltas,
                              .max_bytes = max_bytes,
                              .wire_id = 9,
                              .wire = wire_,
                              .doorbell = &doorbell_,
                              .clock = &clock_});
  }

  static Delta delta(std::string bytes, std::uint32_t index = 0) {
    Delta made;
    made.index = index;
    made.tokens = 1;
    made.bytes = std::move(bytes);
    return made;
  }

  Doorbell::Rings rings() {
    Doorbell::Rings taken;
    doorbell_.take(taken);
    return taken;
  }

  static std::vector<Delta> take_all(StreamReader& reader) {
    auto credit = StreamReader::Credit::unlimited();
    std::vector<Delta> out;
    (void)reader.take(credit, out);
    return out;
  }

  int wakes_ = 0;
  ManualClock clock_;
  Doorbell doorbell_{clock_};
  std::shared_ptr<WireQueue> wire_ = std::make_shared<WireQueue>([this] { ++wakes_; });
};

TEST_F(TokenStreamTest, DeltasThatWaitAreJoined) {
  auto [writer, reader] = make();
  EXPECT_EQ(writer.push(delta("a")), StreamWriter::Push::kRoom);
  EXPECT_EQ(writer.push(delta("b")), StreamWriter::Push::kRoom);
  const auto out = take_all(reader);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].bytes, "ab");
  EXPECT_EQ(out[0].tokens, 2U);
}

TEST_F(TokenStreamTest, DeltasOfDifferentChoicesAreNotJoined) {
  auto [writer, reader] = make();
  (void)writer.push(delta("a", 0));
  (void)writer.push(delta("b", 1));
  EXPECT_EQ(take_all(reader).size(), 2U);
}

TEST_F(TokenStreamTest, DeltasWithLogprobsAreNotJoined) {
  auto [writer, reader] = make();
  Delta first = delta("a");
  first.logprobs.emplace_back();
  (void)writer.push(std::move(first));
  (void)writer.push(delta("b"));
  EXPECT_EQ(take_all(reader).size(), 2U);
}

TEST_F(TokenStreamTest, IsFullAtItsDeltas) {
  auto [writer, reader] = make(2);
  EXPECT_EQ(writer.push(delta("a")), StreamWriter::Push::kRoom);
  EXPECT_EQ(writer.push(delta("b")), StreamWriter::Push::kFull);
}

TEST_F(TokenStreamTest, IsFullAtItsBytes) {
  auto [writer, reader] = make(100, 10);
  EXPECT_EQ(writer.push(delta("12345")), StreamWriter::Push::kRoom);
  EXPECT_EQ(writer.push(delta("67890")), StreamWriter::Push::kFull);
}

TEST_F(TokenStreamTest, AFullStreamRingsOnceWhenReadDownToHalf) {
  auto [writer, reader] = make(100, 10);
  (void)writer.push(delta("1234567890"));
  std::vector<Delta> out;
  StreamReader::Credit four{10, 4};
  (void)reader.take(four, out);
  EXPECT_TRUE(rings().readable.empty()) << "six bytes are more than half";
  StreamReader::Credit one{10, 1};
  (void)reader.take(one, out);
  EXPECT_EQ(rings().readable, std::vector{RequestId{7}});
  (void)take_all(reader);
  EXPECT_TRUE(rings().readable.empty());
}

TEST_F(TokenStreamTest, AStreamThatWasNeverFullDoesNotRing) {
  auto [writer, reader] = make();
  (void)writer.push(delta("a"));
  (void)take_all(reader);
  EXPECT_TRUE(rings().readable.empty());
}

TEST_F(TokenStreamTest, CreditSplitsADeltaAndLosesNoByte) {
  auto [writer, reader] = make();
  (void)writer.push(delta("hello"));
  std::vector<Delta> out;
  StreamReader::Credit credit{5, 2};
  (void)reader.take(credit, out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].bytes, "he");
  EXPECT_EQ(out[0].tokens, 0U) << "the tokens come with the last piece";
  EXPECT_EQ(credit.bytes, 0U);
  EXPECT_EQ(credit.deltas, 4U);
  const auto rest = take_all(reader);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].bytes, "llo");
  EXPECT_EQ(rest[0].tokens, 1U);
}

TEST_F(TokenStreamTest, WithoutCreditNothingIsTaken) {
  auto [writer, reader] = make();
  (void)writer.push(delta("a"));
  std::vector<Delta> out;
  StreamReader::Credit no_deltas{0, 100};
  StreamReader::Credit no_bytes{100, 0};
  (void)reader.take(no_deltas, out);
  (void)reader.take(no_bytes, out);
  EXPECT_TRUE(out.empty());
}

TEST_F(TokenStreamTest, AFailureDoesNotWaitForCreditAndAnEndDoes) {
  for (const bool failed : {true, false}) {
    auto [writer, reader] = make();
    (void)writer.push(delta("abc"));
    writer.finish(std::nullopt, failed ? StreamEnd(fail(Code::kResourceExhausted, "not read"))
                                       : StreamEnd(Usage{}));
    StreamReader::Credit credit{.deltas = 0, .bytes = 0};
    std::vector<Delta> out;
    EXPECT_EQ(reader.take(credit, out).has_value(), failed);
    EXPECT_TRUE(out.empty());
  }
}

TEST_F(TokenStreamTest, TheEndComesOnceAndWithTheLastDelta) {
  auto [writer, reader] = make();
  (void)writer.push(delta("a", 0));
  writer.finish(delta("b", 1), Usage{.prompt_tokens = 3, .completion_tokens = 2});
  std::vector<Delta> out;
  StreamReader::Credit one{1, 100};
  EXPECT_FALSE(reader.take(one, out)) << "a delta is still to be taken";
  StreamReader::Credit more{1, 100};
  const auto end = reader.take(more, out);
  ASSERT_TRUE(end);
  EXPECT_EQ((*end)->completion_tokens, 2U);
  EXPECT_EQ(out.size(), 2U);
  StreamReader::Credit again{1, 100};
  EXPECT_FALSE(reader.take(again, out));
}

TEST_F(TokenStreamTest, AWriterDroppedUnfinishedIsAnInternalError) {
  auto [writer, reader] = make();
  { const StreamWriter dropped = std::move(writer); }
  std::vector<Delta> out;
  auto credit = StreamReader::Credit::unlimited();
  const auto end = reader.take(credit, out);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->error().code, Code::kInternal);
  EXPECT_EQ(wakes_, 1) << "nobody else would wake its wire";
}

TEST_F(TokenStreamTest, DroppingTheReaderRingsAndShows) {
  auto [writer, reader] = make();
  EXPECT_FALSE(writer.reader_gone());
  { const StreamReader dropped = std::move(reader); }
  EXPECT_TRUE(writer.reader_gone());
  EXPECT_EQ(writer.reader_gone_since(), clock_.now());
  EXPECT_EQ(rings().dropped, std::vector{RequestId{7}});
}

TEST_F(TokenStreamTest, DroppingTheReaderOfAFinishedStreamIsNoCancellation) {
  auto [writer, reader] = make();
  writer.finish(std::nullopt, Usage{});
  { const StreamReader dropped = std::move(reader); }
  EXPECT_TRUE(rings().dropped.empty());
}

TEST_F(TokenStreamTest, MarksItsWireOnceUntilItIsTaken) {
  auto [writer, reader] = make();
  (void)writer.push(delta("a"));
  EXPECT_EQ(writer.take_touched_wire(), wire_);
  (void)writer.push(delta("b"));
  EXPECT_EQ(writer.take_touched_wire(), nullptr);
  std::vector<WireId> marked;
  wire_->wake();
  wire_->take(marked);
  EXPECT_EQ(marked, std::vector<WireId>{9});
  (void)take_all(reader);
  (void)writer.push(delta("c"));
  EXPECT_EQ(writer.take_touched_wire(), wire_);
}

TEST_F(TokenStreamTest, EveryByteCrossesThreadsInOrder) {
  auto [writer, reader] = make(1 << 20, 1 << 20);
  constexpr int kDeltas = 20'000;
  std::string sent;
  for (int i = 0; i < kDeltas; ++i) sent += std::to_string(i);
  std::thread engine([&writer = writer] {
    for (int i = 0; i < kDeltas; ++i) (void)writer.push(delta(std::to_string(i)));
    writer.finish(std::nullopt, Usage{});
  });
  std::string got;
  for (bool ended = false; !ended;) {
    std::vector<Delta> out;
    StreamReader::Credit credit{3, 7};
    ended = reader.take(credit, out).has_value();
    for (const Delta& taken : out) got += taken.bytes;
  }
  engine.join();
  EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace sluice
