// Cors: what lets pages of other origins call the gateway (Fetch standard, 3.2). A preflight is
// answered before the key is looked at, for browsers send none with it. Cookies and the like are
// never allowed along: callers show a key. Origins that are not allowed get an answer without these
// headers, which their browser then keeps from the page.
// Thread: any (const).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gateway/http_message.h"

namespace sluice {

class Cors {
 public:
  // Origins as browsers send them ("https://app.example.com"), or "*" for any; none: no page of
  // another origin.
  explicit Cors(std::vector<std::string> origins);

  // The whole answer, if the request is a preflight.
  [[nodiscard]] std::optional<ResponseHead> answer_preflight(const HttpRequest& request) const;

  // For every other answer.
  void add_headers(const HttpHeaders& request, HttpHeaders& response) const;

 private:
  void add_origin(const HttpHeaders& request, HttpHeaders& response) const;

  std::vector<std::string> origins_;
  bool any_;
};

}  // namespace sluice
