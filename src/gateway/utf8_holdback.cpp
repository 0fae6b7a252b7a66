#include "gateway/utf8_holdback.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace sluice {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// `fault`: where `bytes` stop being valid.
void append_repaired(std::string_view bytes, std::optional<std::size_t> fault, std::string& out) {
  for (; fault; fault = find_invalid_utf8(bytes)) {
    const std::size_t begun = incomplete_utf8_tail(bytes.substr(0, *fault));
    out.append(bytes, 0, *fault - begun);
    out += kReplacement;
    bytes.remove_prefix(begun == 0 ? *fault + 1 : *fault);
  }
  out += bytes;
}

}  // namespace

std::string_view Utf8Holdback::take(std::string_view bytes, std::string& scratch) {
  std::string joined;
  if (held_bytes_ > 0) {
    joined.assign(held_.data(), held_bytes_);
    joined += bytes;
    bytes = joined;
  }
  held_bytes_ = incomplete_utf8_tail(bytes);
  std::copy(bytes.end() - static_cast<std::ptrdiff_t>(held_bytes_), bytes.end(), held_.begin());
  bytes.remove_suffix(held_bytes_);
  const std::optional<std::size_t> fault = find_invalid_utf8(bytes);
  if (!fault && joined.empty()) return bytes;
  scratch.clear();
  append_repaired(bytes, fault, scratch);
  return scratch;
}

std::string_view Utf8Holdback::flush() noexcept {
  return std::exchange(held_bytes_, 0) == 0 ? std::string_view() : kReplacement;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string text;
  append_repaired(bytes, find_invalid_utf8(bytes), text);
  return text;
}

}  // namespace sluice
