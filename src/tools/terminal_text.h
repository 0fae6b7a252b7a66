// TerminalText: an answer's bytes as a terminal may see them. Characters that a delta cuts are held
// back until they are whole, and what would steer the terminal (control characters, escape
// sequences) or is no UTF-8 becomes U+FFFD. Bounded: it holds back at most three bytes. Thread: any
// one at a time.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

class TerminalText {
 public:
  // What can be shown now, of what was held back and `bytes`.
  [[nodiscard]] std::string push(std::string_view bytes);
  // What is left when the answer has ended.
  [[nodiscard]] std::string finish();

 private:
  std::string held_;
};

// `bytes` with everything that is not UTF-8, and each NUL, replaced by U+FFFD: what the contract
// accepts as text.
[[nodiscard]] std::string valid_text(std::string_view bytes);

// `text` as one line that can't steer a terminal.
[[nodiscard]] std::string one_line(std::string_view text);

}  // namespace sluice
