#include "tools/line_reader.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

namespace sluice {
namespace {

class LineReaderTest : public testing::Test {
 public:
  ~LineReaderTest() override {
    close(ends_[0]);
    close_input();
  }

 protected:
  void type(std::string_view text) {
    EXPECT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close_input() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  void expect_line(std::string_view line) {
    const LineReader::Input input = reader().read("");
    EXPECT_EQ(input.kind, LineReader::Kind::kLine);
    EXPECT_EQ(input.line, line);
  }
  LineReader& reader() { return reader_; }

  Interrupts interrupts_;

 private:
  static std::array<int, 2> make_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    return ends;
  }

  std::array<int, 2> ends_ = make_pipe();
  LineReader reader_{ends_[0], interrupts_};
};

TEST_F(LineReaderTest, LinesComeOneByOneHoweverTheyWereRead) {
  type("one\ntwo\n\nth");
  expect_line("one");
  expect_line("two");
  expect_line("");
  type("ree\n");
  expect_line("three");
}

TEST_F(LineReaderTest, TheLastLineNeedsNoEnd) {
  type("bye");
  close_input();
  expect_line("bye");
  EXPECT_EQ(reader().read("").kind, LineReader::Kind::kEnd);
}

TEST_F(LineReaderTest, AnInterruptComesOnceAndDropsWhatWasTyped) {
  type("half");
  raise(SIGINT);
  raise(SIGINT);
  EXPECT_EQ(reader().read("").kind, LineReader::Kind::kInterrupt);
  type(" a line\n");
  EXPECT_EQ(reader().read("").kind, LineReader::Kind::kLine);
}

}  // namespace
}  // namespace sluice
