#include "gateway/http1_head_scan.h"

namespace sluice {

bool HeadScan::advance(std::string_view bytes) noexcept {
  while (scanned_ < bytes.size() && head_bytes_ == 0) {
    if (!take(bytes[scanned_])) return false;
    ++scanned_;
    if (ended_) head_bytes_ = scanned_;
  }
  return true;
}

bool HeadScan::take(char byte) noexcept {
  if (after_cr_) {
    after_cr_ = false;
    if (byte != '\n') return refuse("a bare CR");
    if (line_bytes_ == 0 && lines_ == 0) return refuse("no request line");
    ended_ = line_bytes_ == 0;
    ++lines_;
    line_bytes_ = 0;
    return true;
  }
  if (byte == '\r') {
    after_cr_ = true;
    return true;
  }
  if (byte == '\n') return refuse("a bare LF");
  const auto code = static_cast<unsigned char>(byte);
  if ((code < 0x20 && byte != '\t') || code == 0x7F) return refuse("a control byte");
  if (line_bytes_ == 0 && lines_ > 0 && (byte == ' ' || byte == '\t')) {
    return refuse("a folded header field");
  }
  ++line_bytes_;
  return true;
}

}  // namespace sluice
