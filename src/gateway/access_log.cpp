#include "gateway/access_log.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <exception>
#include <utility>

#include "base/code_name.h"
#include "base/concat.h"
#include "contract/utf8.h"
#include "gateway/json_text.h"

namespace sluice {
namespace {

// RFC 3339, in UTC, with milliseconds.
std::string time_text(std::chrono::system_clock::time_point at) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch());
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(ms).count();
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 40> text{};
  const auto date = std::strftime(text.data(), text.size(), "%FT%T", &utc);
  std::snprintf(text.data() + date, text.size() - date, ".%03dZ",
                static_cast<int>(ms.count() - seconds * 1000));
  return text.data();
}

// Clients name models and methods as they like; the line stays JSON whatever they say.
std::string ascii_of(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<unsigned char>(c) < 0x80 ? c : '?';
  return out;
}

// The members of one object.
class Members {
 public:
  void text(std::string_view name, std::string_view text) {
    if (text.empty()) return;
    begin(name);
    if (find_invalid_utf8(text)) {
      append_json_string(out_, ascii_of(text));
    } else {
      append_json_string(out_, text);
    }
  }
  void number(std::string_view name, std::optional<std::uint64_t> number) {
    if (!number) return;
    begin(name);
    append_json_number(out_, *number);
  }
  template <typename Unit>
  void duration(std::string_view name, std::optional<Unit> duration) {
    if (duration)
      number(name, static_cast<std::uint64_t>(std::max<std::int64_t>(duration->count(), 0)));
  }
  void yes_or_no(std::string_view name, bool yes) {
    begin(name);
    out_ += yes ? "true" : "false";
  }
  [[nodiscard]] std::string object() && { return std::move(out_ += '}'); }

 private:
  void begin(std::string_view name) {
    out_ += out_.empty() ? '{' : ',';
    append_json_string(out_, name);
    out_ += ':';
  }
  std::string out_;
};

}  // namespace

std::string to_json(const AccessRecord& record, std::chrono::system_clock::time_point at) {
  Members members;
  members.text("time", time_text(at));
  members.text("request_id", record.request_id);
  members.text("key", record.key);
  members.text("method", record.method);
  members.text("route", record.route);
  members.number("status", static_cast<std::uint64_t>(record.status));
  members.text("code", code_name(record.failure));
  members.text("model", record.model);
  members.text("replica", record.replica);
  members.text("routing_reason", record.routing_reason);
  members.number("attempts", record.attempts);
  members.yes_or_no("stream", record.stream);
  members.text("finish_reason", record.finish_reason);
  members.number("prompt_tokens", record.prompt_tokens);
  members.number("completion_tokens", record.completion_tokens);
  members.number("cached_tokens", record.cached_tokens);
  members.number("bytes_in", record.bytes_in);
  members.number("bytes_out", record.bytes_out);
  members.number("unknown_fields", record.unknown_fields);
  members.duration("queue_ms", record.queue);
  members.duration("ttft_ms", record.ttft);
  members.duration("duration_ms", std::optional(record.duration));
  members.duration("overhead_us", record.overhead);
  return std::move(members).object();
}

Result<AccessLog> AccessLog::open(const std::string& target, std::size_t max_bytes,
                                  Metrics& metrics) {
  if (target == "off") return AccessLog(nullptr);
  Counter lost = metrics.counter("sluice_access_log_lost_total",
                                 "Lines that waited too long for their place, or had none");
  auto lines = LineLog::open(
      target, {.max_waiting_bytes = max_bytes, .on_lost = [lost](std::uint64_t count) mutable {
                 lost.add(static_cast<double>(count));
               }});
  if (!lines) {
    return fail(lines.error().code, concat("--access-log: ", lines.error().message));
  }
  return AccessLog(std::move(*lines));
}

AccessLog::AccessLog(std::unique_ptr<LineLog> lines) noexcept : lines_(std::move(lines)) {}

void AccessLog::write(const AccessRecord& record) noexcept try {
  if (lines_) lines_->write(to_json(record, std::chrono::system_clock::now()));
} catch (const std::exception&) {
  // A line that there is no memory for must not take its request with it.
}

}  // namespace sluice
