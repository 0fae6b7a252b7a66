#include "gateway/request_identity.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "access/hex.h"
#include "access/request_id.h"

namespace sluice {
namespace {

struct Trace {
  std::string_view id;
  std::string_view flags;
};

bool is_hex(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_zero(std::string_view text) noexcept {
  return text.find_first_not_of('0') == std::string_view::npos;
}

// version "-" trace-id "-" parent-id "-" trace-flags, in 2, 32, 16 and 2 lower-case digits; a later
// version may have more behind them (https://www.w3.org/TR/trace-context/, 3.2 and 4).
std::optional<Trace> parse_trace(std::string_view text) noexcept {
  constexpr std::size_t kBytes = 55;
  if (text.size() < kBytes || text[2] != '-' || text[35] != '-' || text[52] != '-')
    return std::nullopt;
  const std::string_view version = text.substr(0, 2);
  const Trace trace{text.substr(3, 32), text.substr(53, 2)};
  const std::string_view parent = text.substr(36, 16);
  if (!is_hex(version) || !is_hex(trace.id) || !is_hex(parent) || !is_hex(trace.flags))
    return std::nullopt;
  if (version == "ff" || is_zero(trace.id) || is_zero(parent)) return std::nullopt;
  if (text.size() > kBytes && (version == "00" || text[kBytes] != '-')) return std::nullopt;
  return trace;
}

// One that is given twice is as good as none.
std::optional<Trace> given_trace(const HttpHeaders& headers) noexcept {
  constexpr std::string_view kName = "traceparent";
  if (headers.count(kName) != 1) return std::nullopt;
  return parse_trace(headers.value(kName));
}

std::string new_traceparent(const HttpHeaders& headers) {
  const auto given = given_trace(headers);
  std::string text = "00-";
  text += given ? std::string(given->id) : random_hex(16);
  text += '-' + random_hex(8) + '-';
  text += given ? given->flags : "00";
  return text;
}

}  // namespace

RequestIdentity identify(const HttpHeaders& headers) {
  const std::string_view given = headers.value("x-request-id");
  return {is_request_id(given) ? std::string(given) : new_request_id(), new_traceparent(headers)};
}

}  // namespace sluice
