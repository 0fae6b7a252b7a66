// SpecialTokens: the texts that stand for control tokens in a rendered prompt ("<|im_start|>"), and
// where a text holds one. Bounded by the vocabulary. Texts shorter than two bytes are left out:
// they can't be told from ordinary text. Thread: any after construction.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "contract/generation.h"

namespace sluice {

struct SpecialToken {
  Token token = 0;
  std::string text;
  bool strips_left = false;  // takes the white space before it away
  bool strips_right = false;
};

class SpecialTokens {
 public:
  explicit SpecialTokens(std::vector<SpecialToken> tokens);

  // The longest one that begins at `position`, or null.
  [[nodiscard]] const SpecialToken* at(std::string_view text, std::size_t position) const noexcept;

  // `text` with `mark` inside each special text, so that none is one any more. The same string if
  // there is none.
  [[nodiscard]] std::string broken_up(std::string_view text, std::string_view mark) const;

 private:
  std::vector<SpecialToken> tokens_;  // by first byte, then longest first
  std::array<std::size_t, 257> first_with_byte_{};
};

}  // namespace sluice
