// The head of an HTTP/1 answer as bytes. A field whose value would break the head (a CR, LF or NUL
// in it) is left out.
// Thread: any (values).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "gateway/http_message.h"

namespace sluice {

struct Http1Framing {
  enum class Body { kLength, kChunked, kToTheEnd, kNone };
  Body body = Body::kLength;
  std::size_t length = 0;  // with kLength
  bool http10 = false;     // the client's version
  bool keep_alive = true;
};

// 204 and 304 have no body, whatever the framing says.
[[nodiscard]] bool may_have_body(int status) noexcept;

void append_http1_head(std::string& out, const ResponseHead& head, const Http1Framing& framing,
                       std::string_view date);

// What the session itself answers, in the shape of OpenAI's errors. Neither text holds a character
// that JSON would escape; `code` "": null.
[[nodiscard]] std::string http_error_body(int status, std::string_view message,
                                          std::string_view code = {});

}  // namespace sluice
