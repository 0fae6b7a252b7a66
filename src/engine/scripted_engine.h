// ScriptedEngine: a deterministic engine without a model, for tests and wire benchmarks. Every
// sequence plays the same script, one token a step; a step comes each `step` of time, or as fast as
// it is asked for. Tokens: a prompt has one for each of its bytes and one to start with.
// Vocabulary: 256 bytes, start, end, and "any piece". Bounded by its options, as the real engine is
// by its own. Thread: as engine.h says.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/script.h"

namespace sluice {

struct ScriptedOptions {
  std::chrono::milliseconds step{0};  // 0: no pace
  Script script = Script::endless();
  std::uint32_t slots = 65'536;
  std::uint32_t context_tokens = 1 << 20;
  std::uint64_t kv_tokens = std::uint64_t{1} << 40;
  bool keeps_prefixes = false;
};

class ScriptedEngine final : public Engine {
 public:
  static constexpr Token kStart = 256;
  static constexpr Token kEnd = 257;
  static constexpr Token kPiece = 258;

  // `clock` outlives the engine.
  ScriptedEngine(ScriptedOptions options, Clock& clock);

  [[nodiscard]] const EngineInfo& info() const noexcept override { return info_; }
  [[nodiscard]] Result<std::vector<Token>> tokenize(const PromptSource& source) const override;
  [[nodiscard]] std::unique_ptr<SamplerState> make_sampler(
      const Sampling& sampling, std::uint32_t index,
      const std::vector<Token>& prompt) const override;
  void step(const Batch& batch, const AbortCheck& abort, StepResult& result) override;
  void release(Slot slot) override;
  [[nodiscard]] bool copy_prefix(Slot from, Slot to, std::int32_t tokens) override;
  [[nodiscard]] bool keep_prefix(Slot slot, std::int32_t tokens) override;
  [[nodiscard]] Result<std::vector<float>> embed(const std::vector<Token>& tokens,
                                                 const AbortCheck& abort) override;

  // Tokens in the KV cache now, for tests. Thread: engine.
  [[nodiscard]] std::uint64_t kv_used() const noexcept { return kv_used_; }

 private:
  struct Player;

  bool keep_pace(const AbortCheck& abort);
  bool wait_until(TimePoint when, const AbortCheck& abort);
  bool play(Player& player, TimePoint now, const Work& work, const AbortCheck& abort,
            StepResult& result);
  void set_used(Slot slot, std::uint64_t tokens);

  const ScriptedOptions options_;
  Clock& clock_;
  EngineInfo info_;
  std::vector<std::uint64_t> used_;  // tokens in each slot
  std::uint64_t kv_used_ = 0;
  TimePoint next_step_{};
  Mutex pace_mutex_;
  CondVar pace_condition_;  // never notified: time is what it waits for
};

}  // namespace sluice
