// The target of a request line as path and query: origin form ("/path?query"), absolute form
// ("http://host/path"), or "*" for OPTIONS. The path is percent-decoded; an invalid escape, an
// encoded NUL and anything else (CONNECT's "host:port") is an error.
// Thread: any (values).
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice {

struct HttpTarget {
  std::string path;
  std::string query;      // as sent
  std::string authority;  // of the absolute form, which counts instead of Host; "": none
};

[[nodiscard]] Result<HttpTarget> parse_http_target(std::string_view method,
                                                   std::string_view target);

}  // namespace sluice
