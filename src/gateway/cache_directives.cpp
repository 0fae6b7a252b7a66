#include "gateway/cache_directives.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "access/keys.h"
#include "base/concat.h"
#include "contract/validate.h"

namespace sluice {
namespace {

// The replica's bound, less the caller's name that goes before it (Completion::run).
constexpr std::size_t kMaxSaltBytes = kMaxCacheSaltBytes - ApiKey::kMaxNameBytes - 1;

constexpr std::uint32_t kDay = 86'400;

// "5m", "1h", "12h", "90s", "90"; at most a day. Nothing if it is none of that.
std::optional<std::uint32_t> seconds_of(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  std::uint64_t scale = 0;
  if (unit.empty() || unit == "s") scale = 1;
  if (unit == "m") scale = 60;
  if (unit == "h") scale = 3600;
  if (unit == "d") scale = kDay;
  if (scale == 0) return std::nullopt;
  const std::uint64_t most = kDay;
  return static_cast<std::uint32_t>(std::min(std::min(number, most) * scale, most));
}

void lengthen(std::optional<std::uint32_t>& ttl, std::optional<std::uint32_t> other) noexcept {
  if (other) ttl = std::max(ttl.value_or(0), *other);
}

// A time as a string or as a number of seconds; another type is as unknown as another unit.
std::optional<std::uint32_t> read_ttl(Fields& fields) {
  if (fields.kind("ttl") == FieldKind::kString) return seconds_of(fields.text("ttl"));
  return fields.has("ttl") ? seconds_of(fields.json("ttl")) : std::nullopt;
}

void read_prompt_cache_options(Fields& fields, const CacheMarks& marks, CacheHints& hints) {
  auto options = fields.object("prompt_cache_options");
  if (!options) return;
  lengthen(hints.ttl_seconds, read_ttl(*options));
  const std::string_view mode = options->text("mode");
  if (!mode.empty() && mode != "implicit" && mode != "explicit") {
    options->fail("mode", "must be \"implicit\" or \"explicit\"");
  }
  if (mode == "explicit" && marks.breakpoints == 0) hints.no_cache = hints.no_store = true;
}

void read_prompt_cache_retention(Fields& fields, CacheHints& hints) {
  const std::string_view retention = fields.text("prompt_cache_retention");
  if (retention.empty() || retention == "in_memory" || retention == "in-memory") return;
  if (retention != "24h") {
    fields.fail("prompt_cache_retention", "must be \"in_memory\" or \"24h\"");
    return;
  }
  lengthen(hints.ttl_seconds, kDay);
}

void read_salt(Fields& fields, std::string_view name, std::string& salt) {
  if (fields.read(name, salt) && salt.size() > kMaxSaltBytes)
    fields.fail(name, concat("must have at most ", kMaxSaltBytes, " bytes"));
}

void read_litellm_cache(Fields& fields, CacheHints& hints) {
  auto cache = fields.object("cache");
  if (!cache) return;
  bool no_cache = false;
  bool no_store = false;
  cache->read("no-cache", no_cache);
  cache->read("no-store", no_store);
  hints.no_cache |= no_cache;
  hints.no_store |= no_store;
  lengthen(hints.ttl_seconds, read_ttl(*cache));
  read_salt(*cache, "namespace", hints.salt);
}

// RFC 9111, section 5.2.1. An age is about stored answers, and KV does not age: only that of 0 says
// something here.
void read_cache_control_header(std::string_view header, CacheHints& hints) {
  while (!header.empty()) {
    const std::size_t comma = std::min(header.find(','), header.size());
    std::string directive(header.substr(0, comma));
    header.remove_prefix(std::min(comma + 1, header.size()));
    std::erase_if(directive, [](char c) { return c == ' ' || c == '\t'; });
    std::transform(directive.begin(), directive.end(), directive.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    hints.no_cache |= directive == "no-cache" || directive == "max-age=0";
    hints.no_store |= directive == "no-store";
  }
}

}  // namespace

bool read_cache_mark(Fields& fields, CacheMarks& marks) {
  bool marked = false;
  for (const std::string_view name : {"cache_control", "prompt_cache_breakpoint"}) {
    auto mark = fields.object(name);
    if (!mark) continue;
    lengthen(marks.ttl_seconds, read_ttl(*mark));
    marked = true;
  }
  marks.breakpoints += marked ? 1 : 0;
  return marked;
}

CacheHints read_cache_hints(Fields& fields, const HttpHeaders& headers, const CacheMarks& marks) {
  CacheHints hints;
  hints.ttl_seconds = marks.ttl_seconds;
  read_prompt_cache_options(fields, marks, hints);
  read_prompt_cache_retention(fields, hints);
  read_litellm_cache(fields, hints);
  bool cache_prompt = true;
  fields.read("cache_prompt", cache_prompt);
  hints.no_cache |= !cache_prompt;
  read_salt(fields, "cache_salt", hints.salt);
  fields.accept({"n_cache_reuse"});
  read_cache_control_header(headers.value("cache-control"), hints);
  return hints;
}

}  // namespace sluice
