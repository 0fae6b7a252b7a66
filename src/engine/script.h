// Script: what a scripted engine says to every request, read from a text file with one directive a
// line:
//   piece "text" [DELAY]  one token with these bytes (C escapes: \n \t \" \\ \xHH), so long after
//                         the one before
//
//   prefill DELAY         the first token comes no sooner than this after the sequence's first row
//
//   echo                  the prompt's own bytes, one a token
//
//   fail "message"        this sequence fails here
//
//   break "message"       the whole forward pass fails here
//
//   hang                  nothing more comes for this sequence
//
//   block                 the forward pass does not return until it is aborted
//
//   loop                  begins again with the first piece; without it, and at the end, the
//                         end-of-generation token comes
//
// DELAY is a number with ms or s. Lines that begin with # are comments.
// Bounded: kMaxDirectives, kMostBytes. Thread: any (values).
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice {

struct ScriptStep {
  enum class Kind { kPiece, kEcho, kFail, kBreak, kHang, kBlock, kLoop };
  Kind kind = Kind::kPiece;
  std::string text;
  std::chrono::milliseconds delay{0};
};

struct Script {
  static constexpr std::size_t kMaxDirectives = 100'000;
  static constexpr std::size_t kMostBytes = 16 << 20;

  std::vector<ScriptStep> steps;
  std::chrono::milliseconds prefill{0};

  // "token " for ever.
  [[nodiscard]] static Script endless();
  // The error names the line.
  [[nodiscard]] static Result<Script> parse(std::string_view text);
  // The error names the file, and the line where one is wrong.
  [[nodiscard]] static Result<Script> load(const std::string& path);
};

}  // namespace sluice
