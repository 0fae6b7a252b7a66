#include "tools/make_engine.h"

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>

#include "engine/llama_engine.h"
#include "engine/scripted_engine.h"

namespace sluice {
namespace {

Result<std::unique_ptr<Engine>> make_scripted(const EngineOptions& options, const Limits& limits,
                                              Clock& clock) {
  ScriptedOptions scripted;
  scripted.step = std::chrono::milliseconds(options.step_ms);
  scripted.slots = limits.max_sequences;
  if (options.context_tokens != 0) scripted.context_tokens = options.context_tokens;
  if (!options.script.empty()) {
    auto script = Script::load(options.script);
    if (!script) return tl::unexpected(std::move(script.error()));
    scripted.script = std::move(*script);
  }
  return std::make_unique<ScriptedEngine>(std::move(scripted), clock);
}

#ifdef SLUICE_WITH_LLAMA
std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// In the cache that ./run keeps its sources and models in. Empty: there is no such place.
std::string weights_folder() {
  if (const std::string cache = variable("SLUICE_CACHE"); !cache.empty()) return cache + "/weights";
  const std::string user = variable("XDG_CACHE_HOME");
  if (!user.empty()) return user + "/sluice/weights";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/sluice/weights";
}
#endif

}  // namespace

#ifdef SLUICE_WITH_LLAMA
Result<std::unique_ptr<Engine>> make_real_engine(const EngineOptions& options,
                                                 const Limits& limits) {
  if (options.model.empty())
    return invalid("--model FILE.gguf is missing, and SLUICE_MODEL is not set (./run sets it)");
  LlamaOptions llama;
  llama.model_path = options.model;
  if (options.context_tokens != 0) llama.context_tokens = options.context_tokens;
  llama.slots = limits.max_sequences;
  llama.threads = options.threads;
  llama.max_step_tokens = limits.max_step_tokens;
  llama.weights = options.weights;
  llama.weights_folder = weights_folder();
  llama.kv_type = options.kv_format == KvFormat::kF16 ? KvType::kF16 : KvType::kQ8_0;
  return make_llama_engine(llama);
}
#else
Result<std::unique_ptr<Engine>> make_real_engine(const EngineOptions&, const Limits&) {
  return fail(Code::kUnimplemented,
              "this build has only --engine scripted (SLUICE_LLAMA_SOURCE was not given)");
}
#endif

Result<std::unique_ptr<Engine>> make_engine(const EngineOptions& options, const Limits& limits,
                                            Clock& clock) {
  return options.kind == EngineKind::kScripted ? make_scripted(options, limits, clock)
                                               : make_real_engine(options, limits);
}

}  // namespace sluice
