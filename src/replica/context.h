// ReplicaContext: what every call of the two gRPC services works with. Made once by Replica, which
// owns all of it and outlives every call. Thread: any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/clock.h"
#include "base/gate.h"
#include "contract/limits.h"
#include "contract/validate.h"

namespace sluice {

class Admission;
class EmbedQueue;
class Engine;
class KeyRing;
class Preparer;
struct ReplicaMetrics;

struct ReplicaContext {
  Engine& engine;
  Admission& admission;
  Preparer& preparer;
  EmbedQueue& embed_queue;
  Clock& clock;
  const Limits& limits;
  const KeyRing& keys;
  ReplicaMetrics& metrics;
  Gate& calls;  // a pass for each request that a drain waits for: Generate, Embed, CountTokens,
                // each Start of an Attach
  ServedModel model;  // its name is the engine's
  // Starts a drain with this grace (absent: the configured one); returns how many requests are
  // still to finish.
  std::function<std::uint32_t(std::optional<std::chrono::milliseconds> grace)> start_drain;
};

}  // namespace sluice
