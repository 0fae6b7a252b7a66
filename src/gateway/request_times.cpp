#include "gateway/request_times.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/concat.h"

namespace sluice {
namespace {

constexpr double kLongestSeconds = 24 * 3600;

// The header's duration, if it is there; `unit_seconds`: of the number that it holds.
Result<std::optional<Duration>> duration_in(const HttpHeaders& headers, std::string_view name,
                                            double unit_seconds) {
  const std::string* const text = headers.find(name);
  if (text == nullptr) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  const bool whole = error == std::errc{} && end == text->data() + text->size();
  if (!whole || !(value > 0)) return invalid(concat(name, " is a number above 0"));
  const std::chrono::duration<double> seconds(std::min(value * unit_seconds, kLongestSeconds));
  return std::chrono::duration_cast<Duration>(seconds);
}

struct Header {
  const char* name;
  double unit_seconds;
};
constexpr Header kWhole[] = {{"x-request-timeout", 1}, {"x-litellm-timeout", 1}};
constexpr Header kFirst[] = {
    {"x-litellm-stream-timeout", 1}, {"x-llm-d-slo-ttft-ms", 1e-3}, {"x-slo-ttft-ms", 1e-3}};

template <std::size_t Count>
Result<TimePoint> soonest(const HttpRequest& request, const Header (&headers)[Count],
                          TimePoint otherwise) {
  TimePoint soonest = otherwise;
  for (const Header& header : headers) {
    const auto given = duration_in(request.headers, header.name, header.unit_seconds);
    if (!given) return tl::unexpected(given.error());
    if (*given) soonest = std::min(soonest, request.arrived_at + **given);
  }
  return soonest;
}

}  // namespace

Result<RequestTimes> times_of(const HttpRequest& request, const GatewayLimits& limits) {
  const auto deadline = soonest(request, kWhole, request.arrived_at + limits.request_timeout);
  if (!deadline) return tl::unexpected(deadline.error());
  const auto first_token_by = soonest(request, kFirst, kForever);
  if (!first_token_by) return tl::unexpected(first_token_by.error());
  return RequestTimes{*deadline, *first_token_by};
}

}  // namespace sluice
