// JsonBody: a request's body, parsed. Strict JSON in UTF-8, one object and nothing behind it; where
// a key stands twice, the last one counts. Bounded by --max-json-depth and --max-json-values, both
// held before or while parsing; beyond them kInvalidArgument, and the error names the flag. Thread:
// any one at a time.
#pragma once

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <string_view>

#include "gateway/gateway_limits.h"
#include "gateway/openai_error.h"

namespace sluice {

class JsonBody {
 public:
  [[nodiscard]] static ApiResult<JsonBody> parse(std::string_view body,
                                                 const GatewayLimits& limits);

  [[nodiscard]] const boost::json::object& root() const noexcept { return value_.get_object(); }

 private:
  explicit JsonBody(std::unique_ptr<boost::json::monotonic_resource> memory) noexcept
      : memory_(std::move(memory)), value_(memory_.get()) {}

  std::unique_ptr<boost::json::monotonic_resource> memory_;  // of everything in value_
  boost::json::value value_;
};

}  // namespace sluice
