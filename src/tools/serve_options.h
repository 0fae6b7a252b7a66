// ServeOptions: what the command line, and the file of --config, of `sluice replica` and `sluice
// up` say. Every bound of Limits is a flag. A flag beats the file, the file beats the default.
// Thread: any (values).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "engine/llama_engine.h"
#include "gateway/gateway_options.h"
#include "replica/replica.h"

namespace sluice {

enum class EngineKind { kLlama, kScripted };
enum class KvFormat { kF16, kQ8_0 };

struct EngineOptions {
  EngineKind kind = EngineKind::kLlama;
  std::string model;                 // llama: a GGUF file
  std::uint32_t context_tokens = 0;  // 0: the engine's own default
  std::uint32_t threads = 0;         // llama; 0: as many as the machine has
  KvFormat kv_format = KvFormat::kQ8_0;
  Weights weights = Weights::kAuto;  // llama
  std::uint32_t step_ms = 0;         // scripted; 0: no pace
  std::string script;                // scripted: a file; empty: tokens for ever
};

struct ServeOptions {
  ReplicaOptions replica;
  std::optional<GatewayOptions> gateway;  // of `sluice up`
  EngineOptions engine;
  LogLevel log_level = LogLevel::kInfo;
  bool warm_up = true;
};

// argv[0] is `command`. Nothing: --help or --print-config was answered. Errors name the flag, or
// the file and its key.
[[nodiscard]] Result<std::optional<ServeOptions>> parse_serve_options(const std::string& command,
                                                                      int argc, char** argv);

}  // namespace sluice
