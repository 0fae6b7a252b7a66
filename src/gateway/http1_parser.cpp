#include "gateway/http1_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <utility>

#include "base/concat.h"
#include "gateway/http1_head_scan.h"
#include "gateway/http_target.h"

namespace sluice {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

// A body's declared size is believed up to here; beyond it memory grows as the bytes come.
constexpr std::size_t kMostReserved = 64 << 10;

// Whether the head's first line ends in a version that isn't served.
bool names_another_version(std::string_view head) noexcept {
  const std::string_view line = head.substr(0, head.find('\r'));
  const std::string_view version = line.substr(line.rfind(' ') + 1);
  return version.size() == 8 && version.substr(0, 5) == "HTTP/" && version != "HTTP/1.0" &&
         version != "HTTP/1.1";
}

// What a Host may be made of (RFC 3986, 3.2.2 and 3.2.3); empty is allowed.
bool is_host(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-._~:[]%!$&'()*+,;=").find(c) != std::string_view::npos;
  });
}

}  // namespace

class Http1Parser::Fields final : public http::basic_parser<true> {
 public:
  HeadScan scan;
  HttpRequest request;
  std::string target;
  int version = 0;  // 10 or 11
  bool begun = false;

 private:
  void on_request_impl(http::verb, beast::string_view method, beast::string_view sent_target,
                       int sent_version, error_code&) override {
    request.method.assign(method.data(), method.size());
    version = sent_version;
    target.assign(sent_target.data(), sent_target.size());
  }
  void on_response_impl(int, beast::string_view, int, error_code&) override {}
  void on_field_impl(http::field, beast::string_view name, beast::string_view value,
                     error_code&) override {
    if (is_header_done()) return;  // a trailer
    request.headers.add(std::string(name.data(), name.size()),
                        std::string(value.data(), value.size()));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& bytes, error_code&) override {
    if (bytes) request.body.reserve(std::min<std::uint64_t>(*bytes, kMostReserved));
  }
  std::size_t on_body_impl(beast::string_view bytes, error_code&) override {
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view bytes, error_code&) override {
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_finish_impl(error_code&) override {}
};

Http1Parser::Http1Parser(const GatewayLimits& limits)
    : limits_(limits), fields_(std::make_unique<Fields>()) {
  fields_->header_limit(limits.max_header_bytes);
  fields_->body_limit(limits.max_body_bytes);
  fields_->eager(true);
}

Http1Parser::~Http1Parser() = default;

bool Http1Parser::head_done() const noexcept { return checked_; }
bool Http1Parser::done() const noexcept { return checked_ && !refusal_ && fields_->is_done(); }
bool Http1Parser::http10() const noexcept { return fields_->version < 11; }
bool Http1Parser::keep_alive() const noexcept { return fields_->keep_alive(); }
bool Http1Parser::expects_continue() const noexcept {
  return !http10() && same_word(fields_->request.headers.value("expect"), "100-continue");
}
HttpRequest& Http1Parser::request() noexcept { return fields_->request; }

void Http1Parser::refuse(int status, std::string message) {
  refusal_ = HttpRefusal{status, std::move(message)};
}

// An empty line before a request is ignored (RFC 9112 2.2).
std::size_t Http1Parser::feed(std::string_view bytes) {
  if (refusal_ || done()) return 0;
  if (checked_) return feed_body(bytes);
  std::size_t skipped = 0;
  if (!fields_->begun) {
    if (bytes.empty() || bytes == "\r") return 0;
    fields_->begun = true;
    if (bytes.substr(0, 2) == "\r\n") skipped = 2;
  }
  return skipped + feed_head(bytes.substr(skipped));
}

std::size_t Http1Parser::feed_head(std::string_view bytes) {
  HeadScan& scan = fields_->scan;
  if (!scan.advance(bytes.substr(0, limits_.max_header_bytes))) {
    refuse(400, concat("malformed request: ", scan.fault(), " in its head"));
    return 0;
  }
  if (scan.head_bytes() == 0) {
    if (bytes.size() < limits_.max_header_bytes) return 0;
    refuse(scan.past_request_line() ? 431 : 414,
           concat("the request's ", scan.past_request_line() ? "head is" : "target is",
                  " longer than ", limits_.max_header_bytes, " bytes (--max-header-bytes)"));
    return 0;
  }
  const std::string_view head = bytes.substr(0, scan.head_bytes());
  error_code error;
  fields_->put({head.data(), head.size()}, error);
  if (error == http::error::bad_version && names_another_version(head)) {
    refuse(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  } else if (error) {
    refuse(error);
  } else {
    check_head();
  }
  if (refusal_) return head.size();
  checked_ = true;
  return head.size() + feed_body(bytes.substr(head.size()));
}

std::size_t Http1Parser::feed_body(std::string_view bytes) {
  if (bytes.empty() || fields_->is_done()) return 0;
  error_code error;
  const std::size_t taken = fields_->put({bytes.data(), bytes.size()}, error);
  if (error && error != http::error::need_more) {
    refuse(error);
  } else if (taken == 0 && bytes.size() >= limits_.max_header_bytes) {
    refuse(400, concat("a chunk's header or the trailers are longer than ",
                       limits_.max_header_bytes, " bytes (--max-header-bytes)"));
  }
  return taken;
}

void Http1Parser::refuse(const boost::system::error_code& error) {
  if (error == http::error::body_limit) {
    refuse(413, concat("the request's body is longer than ", limits_.max_body_bytes,
                       " bytes (--max-body-bytes)"));
  } else {
    refuse(400, concat("malformed request: ", error.message()));
  }
}

// What Beast takes and we don't.
void Http1Parser::check_head() {
  HttpHeaders& headers = fields_->request.headers;
  const std::size_t codings = headers.count("transfer-encoding");
  const std::size_t lengths = headers.count("content-length");
  const std::size_t hosts = headers.count("host");
  if (codings > 0 && (lengths > 0 || codings > 1 || http10())) {
    return refuse(
        400, "malformed request: Transfer-Encoding with Content-Length, twice, or in HTTP/1.0");
  }
  if (codings == 1 && !same_word(headers.value("transfer-encoding"), "chunked")) {
    return refuse(501, "the only Transfer-Encoding that is served is chunked");
  }
  if (lengths > 1 || headers.value("content-length").find(',') != std::string_view::npos) {
    return refuse(400, "malformed request: more than one Content-Length");
  }
  if (hosts > 1 || (hosts == 0 && !http10()) || !is_host(headers.value("host"))) {
    return refuse(400, "malformed request: there must be one Host, and it must be one");
  }
  auto target = parse_http_target(fields_->request.method, fields_->target);
  if (!target) return refuse(400, concat("malformed request: ", target.error().message));
  fields_->request.path = std::move(target->path);
  fields_->request.query = std::move(target->query);
  if (!target->authority.empty()) {
    headers.remove("host");
    headers.add("Host", std::move(target->authority));
  }
}

}  // namespace sluice
