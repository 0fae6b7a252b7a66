#include "gateway/http_target.h"

#include <strings.h>

#include <cstddef>

namespace sluice {
namespace {

int hex_value(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char lower = static_cast<char>(digit | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

Result<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded += text[at];
      continue;
    }
    if (text.size() - at < 3) return invalid("the path ends within a percent escape");
    const int high = hex_value(text[at + 1]);
    const int low = hex_value(text[at + 2]);
    if (high < 0 || low < 0) return invalid("the path holds an invalid percent escape");
    if (high == 0 && low == 0) return invalid("the path holds an encoded NUL");
    decoded += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return decoded;
}

bool begins_with_scheme(std::string_view target, std::string_view scheme) noexcept {
  return target.size() > scheme.size() &&
         ::strncasecmp(target.data(), scheme.data(), scheme.size()) == 0;
}

}  // namespace

Result<HttpTarget> parse_http_target(std::string_view method, std::string_view target) {
  HttpTarget parsed;
  if (target == "*" && method == "OPTIONS") {
    parsed.path.push_back('*');
    return parsed;
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!begins_with_scheme(target, scheme)) continue;
    target.remove_prefix(scheme.size());
    const auto end = target.find_first_of("/?");
    parsed.authority = target.substr(0, end);
    if (parsed.authority.empty()) return invalid("the request's target names no host");
    target = end == std::string_view::npos ? std::string_view() : target.substr(end);
    if (target.empty() || target.front() == '?') parsed.path.push_back('/');
    break;
  }
  if (parsed.authority.empty() && (target.empty() || target.front() != '/')) {
    return invalid("the request's target is neither a path nor a URL");
  }
  if (target.find('#') != std::string_view::npos) {
    return invalid("the request's target holds a fragment");
  }
  const auto question = target.find('?');
  if (question != std::string_view::npos) parsed.query = target.substr(question + 1);
  auto path = percent_decoded(target.substr(0, question));
  if (!path) return tl::unexpected(std::move(path.error()));
  if (!path->empty()) parsed.path = std::move(*path);
  return parsed;
}

}  // namespace sluice
