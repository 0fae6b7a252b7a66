// LineReader: lines that a person types, or Ctrl-C, or the end.
// Bounded by the terminal: its own line editing takes 4,095 bytes a line.
// Thread: any one at a time.
#pragma once

#include <string>
#include <string_view>

#include "tools/interrupts.h"

namespace sluice {

class LineReader {
 public:
  enum class Kind { kLine, kInterrupt, kEnd };
  struct Input {
    Kind kind = Kind::kEnd;
    std::string line;  // of kLine, without its end
  };

  LineReader(int descriptor, Interrupts& interrupts) noexcept
      : descriptor_(descriptor), interrupts_(interrupts) {}

  // Shows `prompt` on stderr.
  [[nodiscard]] Input read(std::string_view prompt);

 private:
  [[nodiscard]] Kind fill();

  const int descriptor_;
  Interrupts& interrupts_;
  std::string pending_;  // read, and not yet a line
};

}  // namespace sluice
