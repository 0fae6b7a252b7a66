// Routing: where a request may and should go, as its client said it; every dialect's directives
// come down to this. And what was decided, for the answer's headers. "Provider" in OpenRouter's
// words is a replica here. Thread: any (values).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

enum class SortBy { kNone, kLatency, kThroughput };

struct Routing {
  std::vector<std::string> models;  // in order of preference, at least one
  std::string
      affinity;  // requests with the same key go to the same replica if its load allows; "": none
  bool affinity_is_session = false;  // a client's own key, not a hash of the prompt
  std::vector<std::string> order;    // replicas or labels, in this order
  std::vector<std::string> only;
  std::vector<std::string> ignore;
  std::vector<std::string> quantizations;  // "int4", "fp16", …
  bool allow_fallbacks = true;
  bool require_parameters = false;
  bool keep_nothing = false;  // data_collection: deny, zdr: only replicas labelled retain=none
  SortBy sort = SortBy::kNone;
  std::string target;  // trusted callers: exactly this replica
};

enum class RoutingReason {
  kOnly,
  kAffinity,
  kPrefix,
  kLeastLoad,
  kRoundRobin,
  kOrder,
  kSort,
  kTarget
};

}  // namespace sluice
