// HeadScan: finds the end of a request's head byte by byte, as its bytes come, and refuses what
// parsers read differently: a bare CR or LF, a folded line (RFC 9112 5.2), a control byte. So a
// proxy in front and the parser behind agree on where each line ends.
// Bounded by its caller, who holds the bytes. Thread: any (values).
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice {

class HeadScan {
 public:
  // `bytes`: from the request's first byte; those that were there at the last call are not looked
  // at again. False: the head is malformed (fault() says how).
  [[nodiscard]] bool advance(std::string_view bytes) noexcept;

  // The head's size with its empty line; 0 as long as it is not all there.
  [[nodiscard]] std::size_t head_bytes() const noexcept { return head_bytes_; }
  // Whether the request line is all there.
  [[nodiscard]] bool past_request_line() const noexcept { return lines_ > 0; }
  [[nodiscard]] const char* fault() const noexcept { return fault_; }

 private:
  [[nodiscard]] bool take(char byte) noexcept;
  [[nodiscard]] bool refuse(const char* fault) noexcept {
    fault_ = fault;
    return false;
  }

  std::size_t scanned_ = 0;
  std::size_t head_bytes_ = 0;
  std::size_t lines_ = 0;
  std::size_t line_bytes_ = 0;  // of the current line
  bool after_cr_ = false;
  bool ended_ = false;
  const char* fault_ = "";
};

}  // namespace sluice
