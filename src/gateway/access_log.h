// AccessLog: one line of JSON for each request that ended, with what happened to it and nothing of
// what was said: no text, no key, no query, and of the path only the pattern it matched. Bounded by
// --access-log-bytes; beyond it, or where the target takes nothing, lines are lost and counted
// (sluice_access_log_lost_total).
// Thread: any; never waits for its target.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/line_log.h"
#include "base/metrics.h"

namespace sluice {

// What is empty or absent does not stand in the line.
struct AccessRecord {
  std::string request_id;
  std::string key;     // its name
  std::string method;  // GET, POST …
  std::string route;   // the pattern: "/v1/models/{id}"
  int status = 0;      // 499: the client was gone
  std::optional<Code> failure;
  std::string model;
  std::string replica;
  std::string_view routing_reason;
  std::uint32_t attempts = 0;
  bool stream = false;
  std::string_view finish_reason;
  std::optional<std::uint64_t> prompt_tokens;
  std::optional<std::uint64_t> completion_tokens;
  std::optional<std::uint64_t> cached_tokens;
  std::uint64_t bytes_in = 0;  // of bodies
  std::uint64_t bytes_out = 0;
  std::uint32_t unknown_fields = 0;
  std::optional<std::chrono::milliseconds> queue;
  std::optional<std::chrono::milliseconds> ttft;  // to the first token
  std::chrono::milliseconds duration{};
  std::optional<std::chrono::microseconds> overhead;  // of the gateway itself
};

// Without its line end. `at`: when the request ended.
[[nodiscard]] std::string to_json(const AccessRecord& record,
                                  std::chrono::system_clock::time_point at);

class AccessLog {
 public:
  // `target`: "stdout", "stderr", a file, or "off". Errors name it and --access-log.
  [[nodiscard]] static Result<AccessLog> open(const std::string& target, std::size_t max_bytes,
                                              Metrics& metrics);

  void write(const AccessRecord& record) noexcept;

 private:
  explicit AccessLog(std::unique_ptr<LineLog> lines) noexcept;
  std::unique_ptr<LineLog> lines_;  // null: off
};

}  // namespace sluice
