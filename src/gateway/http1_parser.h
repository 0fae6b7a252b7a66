// Http1Parser: the bytes of one HTTP/1 request as an HttpRequest, or why not: the status and what
// to tell the client. Beast splits fields and chunks; what request smuggling needs is refused
// before (HeadScan) and after it (Content-Length beside Transfer-Encoding or twice, any coding but
// chunked, no Host or two). Trailers are dropped. Bounded by --max-header-bytes (431, 414) and
// --max-body-bytes (413). Thread: any (values).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/system/error_code.hpp>

#include "gateway/gateway_limits.h"
#include "gateway/http_message.h"

namespace sluice {

struct HttpRefusal {
  int status = 400;
  std::string message;  // for the client; holds nothing of what it sent
};

class Http1Parser {
 public:
  explicit Http1Parser(const GatewayLimits& limits);
  ~Http1Parser();
  Http1Parser(const Http1Parser&) = delete;
  Http1Parser& operator=(const Http1Parser&) = delete;

  // How many of `bytes` it took; what it left has to come again, with more after it. After done()
  // or a refusal it takes nothing.
  [[nodiscard]] std::size_t feed(std::string_view bytes);

  // For a reason that is not in its bytes.
  void refuse(int status, std::string message);

  [[nodiscard]] const std::optional<HttpRefusal>& refusal() const noexcept { return refusal_; }
  [[nodiscard]] bool head_done() const noexcept;
  [[nodiscard]] bool done() const noexcept;

  // Once the head is done.
  [[nodiscard]] bool http10() const noexcept;
  [[nodiscard]] bool keep_alive() const noexcept;
  [[nodiscard]] bool expects_continue() const noexcept;
  // Once it is done.
  [[nodiscard]] HttpRequest& request() noexcept;

 private:
  class Fields;  // Beast's parser, filling an HttpRequest

  [[nodiscard]] std::size_t feed_head(std::string_view bytes);
  [[nodiscard]] std::size_t feed_body(std::string_view bytes);
  void check_head();
  void refuse(const boost::system::error_code& error);

  const GatewayLimits& limits_;
  std::unique_ptr<Fields> fields_;
  std::optional<HttpRefusal> refusal_;
  bool checked_ = false;
};

}  // namespace sluice
