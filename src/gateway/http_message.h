// What a session hands to a handler and what a handler answers, whatever HTTP version carries it.
// A request is whole: its body has been read, within --max-body-bytes.
// Thread: any (values).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace sluice {

// Whether two texts of HTTP are the same without regard to case.
[[nodiscard]] bool same_word(std::string_view a, std::string_view b) noexcept;

// Field names are compared without regard to case; the order is kept.
class HttpHeaders {
 public:
  void add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
  }
  // The first field of that name; null if there is none.
  [[nodiscard]] const std::string* find(std::string_view name) const noexcept;
  // Its value, or "".
  [[nodiscard]] std::string_view value(std::string_view name) const noexcept;
  void remove(std::string_view name) noexcept;
  // How many fields have that name.
  [[nodiscard]] std::size_t count(std::string_view name) const noexcept;
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& fields() const noexcept {
    return fields_;
  }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct HttpRequest {
  std::string method;  // as sent: "GET"
  std::string path;    // without the query, percent-decoded
  std::string query;   // without the question mark, as sent
  HttpHeaders headers;
  std::string body;
  std::string client_identity;  // subject of the client's certificate, where mutual TLS showed one
  TimePoint arrived_at{};       // when its first byte was read
};

struct ResponseHead {
  int status = 200;
  HttpHeaders
      headers;  // without those of framing (Content-Length, Transfer-Encoding, Connection, Date)
};

}  // namespace sluice
