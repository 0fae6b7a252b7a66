// Cors: which pages may call the gateway (Fetch standard, 3.2). A preflight is answered before the
// key is looked at, for browsers send none with it. Cookies and the like are never allowed along:
// callers show a key. Origins that are not allowed get an answer without these headers, which their
// browser then keeps from the page; where no key is needed, their requests are refused as well: a
// page that its user merely looks at could otherwise have the model work, and by DNS rebinding read
// what it says.
// Thread: any (const).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/http_message.h"

namespace sluice {

class Cors {
 public:
  // Origins as browsers send them ("https://app.example.com"), or "*" for any. None: any where
  // callers show keys, else those of this machine.
  Cors(std::vector<std::string> origins, bool keys_required);

  // Not a request that a page made which may not call.
  [[nodiscard]] bool may_call(const HttpHeaders& request) const;

  // The whole answer, if the request is a preflight.
  [[nodiscard]] std::optional<ResponseHead> answer_preflight(const HttpRequest& request) const;

  // For every other answer.
  void add_headers(const HttpHeaders& request, HttpHeaders& response) const;

 private:
  [[nodiscard]] bool allows(std::string_view origin) const;
  void add_origin(const HttpHeaders& request, HttpHeaders& response) const;

  const std::vector<std::string> origins_;
  const bool keys_required_;
  const bool any_;
};

}  // namespace sluice
