#include "gateway/http1_response.h"

#include <algorithm>
#include <boost/beast/http/status.hpp>

#include "base/concat.h"

namespace sluice {
namespace {

std::string_view reason_of(int status) {
  namespace http = boost::beast::http;
  const auto known = http::int_to_status(static_cast<unsigned>(status));
  if (known == http::status::unknown) return "";
  const auto reason = http::obsolete_reason(known);
  return {reason.data(), reason.size()};
}

bool breaks_a_head(std::string_view value) noexcept {
  return std::any_of(value.begin(), value.end(),
                     [](char byte) { return byte == '\r' || byte == '\n' || byte == '\0'; });
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

}  // namespace

bool may_have_body(int status) noexcept { return status >= 200 && status != 204 && status != 304; }

void append_http1_head(std::string& out, const ResponseHead& head, const Http1Framing& framing,
                       std::string_view date) {
  out += "HTTP/1.1 ";
  out += std::to_string(head.status);
  out += ' ';
  out += reason_of(head.status);
  out += "\r\n";
  append_field(out, "Date", date);
  for (const auto& [name, value] : head.headers.fields()) {
    if (!breaks_a_head(name) && !breaks_a_head(value)) append_field(out, name, value);
  }
  if (framing.body == Http1Framing::Body::kChunked) {
    append_field(out, "Transfer-Encoding", "chunked");
  } else if (framing.body == Http1Framing::Body::kLength) {
    append_field(out, "Content-Length", std::to_string(framing.length));
  }
  if (!framing.keep_alive) append_field(out, "Connection", "close");
  if (framing.keep_alive && framing.http10) append_field(out, "Connection", "keep-alive");
  out += "\r\n";
}

std::string http_error_body(int status, std::string_view message, std::string_view code) {
  return concat(R"({"error":{"message":")", message, R"(","type":")",
                status >= 500 ? "server_error" : "invalid_request_error",
                R"(","param":null,"code":)",
                code.empty() ? std::string("null") : concat('"', code, '"'), "}}");
}

}  // namespace sluice
