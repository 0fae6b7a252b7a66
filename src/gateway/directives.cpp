#include "gateway/directives.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/concat.h"
#include "base/fnv1a.h"
#include "base/plain_word.h"
#include "contract/validate.h"
#include "gateway/priority.h"

namespace sluice {
namespace {

constexpr std::size_t kMaxModels = 8;
constexpr std::size_t kMaxWarnings = 8;
constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kAffinityBytes = 2048;

// A key of the client's as it may stand in a header or an error.
std::string shown(std::string_view name) {
  const bool plain = name.empty() || is_plain_word(name, kMaxNameBytes);
  return plain ? std::string(name) : "(a name that can't be shown)";
}

void warn(Directives& directives, std::string warning) {
  if (directives.warnings.size() < kMaxWarnings) directives.warnings.push_back(std::move(warning));
}

void read_models(Fields& fields, Routing& routing) {
  std::string model;
  if (fields.read("model", model)) routing.models.push_back(std::move(model));
  for (const std::string_view name : {"models", "fallbacks"}) {
    std::vector<std::string> more;
    fields.read(name, more);
    for (std::string& next : more) {
      const auto& known = routing.models;
      if (std::find(known.begin(), known.end(), next) == known.end()) {
        routing.models.push_back(std::move(next));
      }
      if (known.size() > kMaxModels) {
        fields.fail(name, concat("must name at most ", kMaxModels, " models, with \"model\""));
        return;
      }
    }
  }
  if (routing.models.empty()) fields.fail_missing("model");
}

void read_sort(Fields& provider, Directives& directives) {
  std::string by;
  if (provider.kind("sort") == FieldKind::kObject) {
    auto sort = provider.object("sort");
    sort->read("by", by);
  } else {
    provider.read("sort", by);
  }
  if (by == "latency") directives.routing.sort = SortBy::kLatency;
  if (by == "throughput") directives.routing.sort = SortBy::kThroughput;
  if (by == "price") warn(directives, "provider.sort: price is not known here");
  if (!by.empty() && by != "latency" && by != "throughput" && by != "price") {
    provider.fail("sort", "must be \"latency\", \"throughput\" or \"price\"");
  }
}

void read_retention(Fields& provider, Routing& routing) {
  bool zero_retention = false;
  provider.read("zdr", zero_retention);
  const std::string_view collection = provider.text("data_collection");
  if (!collection.empty() && collection != "allow" && collection != "deny") {
    provider.fail("data_collection", "must be \"allow\" or \"deny\"");
  }
  routing.keep_nothing = zero_retention || collection == "deny";
}

void read_provider(Fields& fields, Directives& directives) {
  auto provider = fields.object("provider");
  if (!provider) return;
  Routing& routing = directives.routing;
  provider->read("order", routing.order);
  provider->read("only", routing.only);
  provider->read("ignore", routing.ignore);
  provider->read("quantizations", routing.quantizations);
  provider->read("allow_fallbacks", routing.allow_fallbacks);
  provider->read("require_parameters", routing.require_parameters);
  read_retention(*provider, routing);
  read_sort(*provider, directives);
  for (const std::string_view name : provider->unasked()) {
    warn(directives, concat("provider.", shown(name), " is not used"));
    if (routing.require_parameters) provider->fail_unsupported(shown(name));
  }
}

// Of the client's own keys the first that is present. The order is that of the most used gateways;
// the body's session_id comes before the header's.
void read_session(Fields& fields, const HttpHeaders& headers, Directives& directives) {
  fields.read("session_id", directives.session_id);
  if (directives.session_id.size() > kMaxSessionIdBytes) {
    fields.fail("session_id", concat("must have at most ", kMaxSessionIdBytes, " bytes"));
  }
  const std::array<std::string_view, 10> keys = {
      directives.session_id,
      headers.value("x-session-id"),
      fields.text("prompt_cache_key"),
      headers.value("x-smg-routing-key"),
      headers.value("openengine-routing-key"),
      headers.value("x-claude-code-session-id"),
      headers.value("session-id"),
      headers.value("session_id"),
      headers.value("x-session-affinity"),
      fields.text("user"),
  };
  const auto* first = std::find_if(keys.begin(), keys.end(), [](auto key) { return !key.empty(); });
  if (first == keys.end()) return;
  directives.routing.affinity = *first;
  directives.routing.affinity_is_session = true;
}

// The same in every gateway of a fleet, and in the next version.
class Fingerprint {
 public:
  void add(std::string_view text) noexcept {
    hash_.add(text.substr(0, kAffinityBytes));
    hash_.add(std::string_view("\0", 1));  // nothing runs together with what comes next
  }
  [[nodiscard]] std::string text() const {
    std::array<char, 16> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), hash_.value(), 16).ptr;
    return std::string(digits.data(), end);
  }

 private:
  Fnv1a hash_;
};

}  // namespace

Directives read_directives(Fields& fields, const HttpHeaders& headers, bool trusted) {
  Directives directives;
  read_models(fields, directives.routing);
  read_provider(fields, directives);
  read_session(fields, headers, directives);
  const Priority priority = read_priority(fields, headers);
  directives.priority = priority.value;
  if (priority.asked_for) directives.service_tier = tier_of(priority.value);
  for (const std::string_view name : priority.not_understood) {
    warn(directives, concat(name, " was not understood"));
  }
  if (trusted) {
    for (const std::string_view name : {"x-smg-target-worker", "x-gateway-destination-endpoint"}) {
      if (directives.routing.target.empty()) directives.routing.target = headers.value(name);
    }
  }
  fields.accept({"route", "transforms", "num_retries", "metadata", "store", "safety_identifier",
                 "request_id", "trace"});
  return directives;
}

std::string prompt_affinity(const PromptSource& prompt) {
  Fingerprint fingerprint;
  if (prompt.raw) {
    if (prompt.raw->empty()) return {};
    fingerprint.add(*prompt.raw);
    return fingerprint.text();
  }
  for (const Message& message : prompt.messages) {
    if (message.role != Role::kSystem && message.role != Role::kUser) continue;
    for (const Part& part : message.parts) fingerprint.add(part.bytes);
    if (message.role == Role::kUser) return fingerprint.text();
  }
  return prompt.messages.empty() ? std::string() : fingerprint.text();
}

std::uint32_t settle_unknown_fields(Fields& fields, const Routing& routing) {
  const std::vector<std::string_view> unknown = fields.unasked();
  if (routing.require_parameters && !unknown.empty()) {
    fields.fail_unsupported(shown(unknown.front()),
                            "is not known here, and provider.require_parameters is true");
  }
  return static_cast<std::uint32_t>(unknown.size());
}

}  // namespace sluice
