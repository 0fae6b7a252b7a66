// The words for what routing decided, as x-routing-reason and the access log have them. Thread:
// any.
#pragma once

#include <string_view>

#include "gateway/routing.h"

namespace sluice {

[[nodiscard]] constexpr std::string_view routing_reason_text(RoutingReason reason) noexcept {
  switch (reason) {
    case RoutingReason::kOnly:
      return "only";
    case RoutingReason::kAffinity:
      return "affinity";
    case RoutingReason::kPrefix:
      return "prefix";
    case RoutingReason::kLeastLoad:
      return "least-load";
    case RoutingReason::kRoundRobin:
      return "round-robin";
    case RoutingReason::kOrder:
      return "order";
    case RoutingReason::kSort:
      return "sort";
    case RoutingReason::kTarget:
      return "target";
  }
  return "";
}

}  // namespace sluice
