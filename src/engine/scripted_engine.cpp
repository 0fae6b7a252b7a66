#include "engine/scripted_engine.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace sluice {
namespace {

constexpr std::chrono::milliseconds kIdleStep{1};
// How soon a pass that waits notices that nobody wants it any more.
constexpr std::chrono::milliseconds kAbortInterval{5};

void append_bytes(std::string_view text, std::vector<Token>& tokens) {
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
}

}  // namespace

struct ScriptedEngine::Player final : SamplerState {
  std::size_t next = 0;    // script step
  std::size_t echoed = 0;  // bytes of the prompt told back
  std::string echo;        // the prompt's bytes, if the script wants them
  std::optional<int> top_logprobs;
  std::optional<TimePoint> ready;  // when the next piece may come
  char told = 0;                   // the byte that an echo's piece points to
};

ScriptedEngine::ScriptedEngine(ScriptedOptions options, Clock& clock)
    : options_(std::move(options)), clock_(clock), used_(options_.slots, 0) {
  info_.kind = "scripted";
  info_.model = "scripted";
  info_.context_tokens = options_.context_tokens;
  info_.vocabulary = kPiece + 1;
  info_.embedding_size = 8;
  info_.slots = options_.slots;
  info_.kv_tokens = options_.kv_tokens;
  info_.longest_piece = 1;
  info_.has_chat_template = true;
  info_.keeps_prefixes = options_.keeps_prefixes;
  info_.best_prefill_tokens = 1 << 20;
}

Result<std::vector<Token>> ScriptedEngine::tokenize(const PromptSource& source) const {
  std::vector<Token> tokens{kStart};
  if (source.raw) append_bytes(*source.raw, tokens);
  for (const Message& message : source.messages) {
    for (const Part& part : message.parts) {
      if (!part.mime_type.empty() && !part.mime_type.starts_with("text/")) {
        return invalid("messages: the scripted engine takes text only");
      }
      append_bytes(part.bytes, tokens);
    }
  }
  return tokens;
}

std::unique_ptr<SamplerState> ScriptedEngine::make_sampler(const Sampling& sampling, std::uint32_t,
                                                           const std::vector<Token>& prompt) const {
  auto player = std::make_unique<Player>();
  player->top_logprobs = sampling.top_logprobs;
  const auto& steps = options_.script.steps;
  const bool echoes = std::any_of(steps.begin(), steps.end(), [](const ScriptStep& step) {
    return step.kind == ScriptStep::Kind::kEcho;
  });
  if (echoes) {
    for (const Token token : prompt) {
      if (token < kStart) player->echo += static_cast<char>(token);
    }
  }
  return player;
}

void ScriptedEngine::step(const Batch& batch, const AbortCheck& abort, StepResult& result) {
  result.status = StepStatus::kDone;
  result.sampled.clear();
  result.message.clear();
  std::uint64_t wanted = kv_used_;
  for (const Work& work : batch.work) wanted += work.tokens.size();
  if (wanted > options_.kv_tokens) {
    result.status = StepStatus::kNoKvSpace;
    return;
  }
  if (!keep_pace(abort)) {
    result.status = StepStatus::kAborted;
    return;
  }
  const TimePoint now = clock_.now();
  for (const Work& work : batch.work) {
    set_used(work.slot, static_cast<std::uint64_t>(work.first_position) + work.tokens.size());
    if (work.sample && !play(static_cast<Player&>(*work.sampler), now, work, abort, result)) return;
  }
  const bool idle =
      !result.sampled.empty() &&
      std::all_of(result.sampled.begin(), result.sampled.end(),
                  [](const Sampled& sampled) { return sampled.kind == Sampled::Kind::kPending; });
  // Without a pace nothing else would keep a silent script from spinning.
  if (idle && options_.step.count() == 0) (void)wait_until(clock_.now() + kIdleStep, abort);
}

// False: the whole pass ends as result.status says.
bool ScriptedEngine::play(Player& player, TimePoint now, const Work& work, const AbortCheck& abort,
                          StepResult& result) {
  const auto& steps = options_.script.steps;
  Sampled& sampled = result.sampled.emplace_back();
  if (options_.script.prefill.count() > 0 && !player.ready)
    player.ready = now + options_.script.prefill;
  if (player.next < steps.size() && steps[player.next].kind == ScriptStep::Kind::kLoop) {
    player.next = 0;
    player.ready = now + steps.front().delay;
  }
  if (player.ready && now < *player.ready) {
    sampled.kind = Sampled::Kind::kPending;
    return true;
  }
  sampled.token = kPiece;
  if (player.next >= steps.size()) {
    sampled.kind = work.may_end ? Sampled::Kind::kEnd : Sampled::Kind::kToken;
    sampled.token = kEnd;
  } else {
    const ScriptStep& step = steps[player.next];
    switch (step.kind) {
      case ScriptStep::Kind::kPiece:
        sampled.piece = step.text;
        ++player.next;
        break;
      case ScriptStep::Kind::kEcho:
        if (player.echoed == player.echo.size()) {
          ++player.next;
          sampled.piece = "";
          break;
        }
        sampled.token = static_cast<unsigned char>(player.told = player.echo[player.echoed++]);
        sampled.piece = {&player.told, 1};
        break;
      case ScriptStep::Kind::kFail:
        sampled.kind = Sampled::Kind::kFailed;
        sampled.piece = step.text;
        return true;
      case ScriptStep::Kind::kBreak:
        result.status = StepStatus::kFailed;
        result.message = step.text;
        ++player.next;
        return false;
      case ScriptStep::Kind::kBlock:
        (void)wait_until(kForever, abort);
        result.status = StepStatus::kAborted;
        return false;
      case ScriptStep::Kind::kHang:
      case ScriptStep::Kind::kLoop:
        sampled.kind = Sampled::Kind::kPending;
        return true;
    }
    if (player.next < steps.size() && steps[player.next].delay.count() > 0) {
      player.ready = now + steps[player.next].delay;
    }
  }
  if (player.top_logprobs) {
    TokenLogprob& logprob = sampled.logprobs.emplace_back();
    logprob.chosen = {sampled.token, std::log(0.5F), std::string(sampled.piece)};
    for (int i = 0; i < *player.top_logprobs; ++i) {
      logprob.top.push_back(
          {i, std::log(0.5F) - static_cast<float>(i), std::string(1, static_cast<char>(i))});
    }
  }
  return true;
}

void ScriptedEngine::release(Slot slot) { set_used(slot, 0); }

bool ScriptedEngine::copy_prefix(Slot from, Slot to, std::int32_t tokens) {
  if (used_[static_cast<std::size_t>(from)] < static_cast<std::uint64_t>(tokens)) return false;
  set_used(to, static_cast<std::uint64_t>(tokens));
  return true;
}

bool ScriptedEngine::keep_prefix(Slot slot, std::int32_t tokens) {
  if (used_[static_cast<std::size_t>(slot)] < static_cast<std::uint64_t>(tokens)) return false;
  set_used(slot, static_cast<std::uint64_t>(tokens));
  return true;
}

Result<std::vector<float>> ScriptedEngine::embed(const std::vector<Token>& tokens,
                                                 const AbortCheck& abort) {
  if (abort()) return fail(Code::kCancelled, "the embedding was cancelled");
  std::vector<float> vector(info_.embedding_size, 0);
  for (const Token token : tokens) vector[static_cast<std::size_t>(token) % vector.size()] += 1;
  float squares = 0;
  for (const float value : vector) squares += value * value;
  for (float& value : vector) value /= std::sqrt(squares);
  return vector;
}

bool ScriptedEngine::keep_pace(const AbortCheck& abort) {
  if (options_.step.count() == 0) return !abort();
  const TimePoint now = clock_.now();
  if (next_step_ < now) next_step_ = now + options_.step;
  const bool came = wait_until(next_step_, abort);
  next_step_ += options_.step;
  return came;
}

// False: aborted.
bool ScriptedEngine::wait_until(TimePoint when, const AbortCheck& abort) {
  MutexLock lock(pace_mutex_);
  for (TimePoint now = clock_.now(); now < when; now = clock_.now()) {
    if (abort()) return false;
    clock_.wait_until(pace_condition_, pace_mutex_, std::min(when, now + kAbortInterval));
  }
  return !abort();
}

void ScriptedEngine::set_used(Slot slot, std::uint64_t tokens) {
  std::uint64_t& used = used_[static_cast<std::size_t>(slot)];
  kv_used_ += tokens - used;
  used = tokens;
}

}  // namespace sluice
