#include "gateway/openai_response.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "gateway/chat_encoder.h"
#include "gateway/choice_answer.h"
#include "gateway/completion_encoder.h"
#include "gateway/openai_tokens.h"
#include "gateway/responses_encoder.h"

namespace sluice {
namespace {

using Wire = std::variant<ChatEncoder, CompletionEncoder, ResponsesEncoder>;

std::string_view id_prefix(Dialect dialect) noexcept {
  switch (dialect) {
    case Dialect::kChat:
      return ChatEncoder::kIdPrefix;
    case Dialect::kCompletion:
      return CompletionEncoder::kIdPrefix;
    case Dialect::kResponses:
      return ResponsesEncoder::kIdPrefix;
  }
  return {};
}

Wire wire_of(const AnswerIdentity& identity, const AnswerShape& shape) {
  switch (shape.dialect) {
    case Dialect::kChat:
      return ChatEncoder(identity, shape);
    case Dialect::kCompletion:
      return CompletionEncoder(identity, shape);
    case Dialect::kResponses:
      return ResponsesEncoder(identity, shape);
  }
  CHECK(false, "a dialect is one of the three");
  return ChatEncoder(identity, shape);
}

// How many of the first deltas go into one frame: those of one choice, up to its end; with
// logprobs, each has its own.
std::size_t frame_deltas(std::span<const ReceivedDelta> deltas) noexcept {
  const auto ends = [](const Delta& delta) {
    return delta.finish_reason.has_value() || !delta.logprobs.empty();
  };
  std::size_t count = 1;
  while (count < deltas.size() && deltas[count].delta.index == deltas.front().delta.index &&
         deltas[count].delta.logprobs.empty() && !ends(deltas[count - 1].delta)) {
    ++count;
  }
  return count;
}

Timings longest(const Timings& a, const Timings& b) noexcept {
  return {std::max(a.queued, b.queued), std::max(a.prefill, b.prefill),
          std::max(a.decode, b.decode), std::max(a.parked, b.parked),
          a.recomputed_tokens + b.recomputed_tokens};
}

}  // namespace

class AnswerEncoder::Dialogue {
 public:
  Dialogue(AnswerShape shape, std::string_view id, std::uint64_t created, std::uint32_t choices)
      : shape_(std::move(shape)), choices_(std::max(choices, 1U)) {
    identity_.id = id_prefix(shape_.dialect);
    identity_.id += id;
    identity_.created = created;
  }

  void add(std::span<const ReceivedDelta> deltas, std::uint32_t first_choice, std::string& out);
  void finish(std::string& out);
  void fail(const ApiError& error, std::string& out);
  [[nodiscard]] const Usage& usage() const noexcept { return usage_; }

 private:
  void count(const ReceivedDelta& received, ChoiceAnswer& generation);
  void add_frame(std::span<const ReceivedDelta> deltas, std::uint32_t index, std::string& out);
  void show(std::uint32_t index, std::span<const TokenLogprob> logprobs, std::string& out);
  void end_choice(std::uint32_t index, FinishReason reason, std::string& out);
  void append_whole(std::string& out);
  Wire& wire(std::string_view model);
  [[nodiscard]] bool keeps_text() const noexcept {
    return !shape_.stream || shape_.dialect == Dialect::kResponses;
  }
  [[nodiscard]] std::string_view echo_of(std::uint32_t index) const noexcept;

  AnswerShape shape_;
  AnswerIdentity identity_;
  std::vector<ChoiceAnswer> choices_;
  Usage usage_;
  std::optional<Wire> wire_;  // once it is known which model answers
  std::string text_;          // of the frame under way
  std::string scratch_;
};

Wire& AnswerEncoder::Dialogue::wire(std::string_view model) {
  if (!wire_) {
    identity_.model = model.empty() ? std::string_view(shape_.model) : model;
    wire_ = wire_of(identity_, shape_);
  }
  return *wire_;
}

void AnswerEncoder::Dialogue::add(std::span<const ReceivedDelta> deltas, std::uint32_t first_choice,
                                  std::string& out) {
  while (!deltas.empty()) {
    const auto frame = deltas.first(frame_deltas(deltas));
    deltas = deltas.subspan(frame.size());
    const std::size_t index = std::size_t{first_choice} + frame.front().delta.index;
    if (index >= choices_.size()) continue;  // a replica's fault, and no choice of this answer
    wire(frame.front().model);
    for (const ReceivedDelta& received : frame) count(received, choices_[first_choice]);
    add_frame(frame, static_cast<std::uint32_t>(index), out);
  }
}

// `generation`: its first choice.
void AnswerEncoder::Dialogue::count(const ReceivedDelta& received, ChoiceAnswer& generation) {
  std::uint32_t prompt_tokens = received.prompt_tokens;
  std::uint32_t completion_tokens = generation.completion_tokens + received.delta.tokens;
  if (received.usage) {
    prompt_tokens = received.usage->prompt_tokens;
    completion_tokens = received.usage->completion_tokens;
    usage_.cached_tokens += received.usage->cached_tokens;
    usage_.cache_write_tokens += received.usage->cache_write_tokens;
    usage_.timings = longest(usage_.timings, received.usage->timings);
  }
  usage_.prompt_tokens += prompt_tokens - generation.prompt_tokens;
  usage_.completion_tokens += completion_tokens - generation.completion_tokens;
  generation.prompt_tokens = prompt_tokens;
  generation.completion_tokens = completion_tokens;
}

void AnswerEncoder::Dialogue::add_frame(std::span<const ReceivedDelta> deltas, std::uint32_t index,
                                        std::string& out) {
  ChoiceAnswer& choice = choices_[index];
  if (choice.finish) return;
  text_.clear();
  for (const ReceivedDelta& received : deltas) {
    text_ += choice.holdback.take(received.delta.bytes, scratch_);
  }
  const Delta& last = deltas.back().delta;
  if (last.finish_reason) text_ += choice.holdback.flush();
  const std::vector<TokenLogprob>& logprobs = last.logprobs;
  if (!text_.empty() || !logprobs.empty()) show(index, logprobs, out);
  if (last.finish_reason) end_choice(index, *last.finish_reason, out);
}

// text_ and what belongs to it.
void AnswerEncoder::Dialogue::show(std::uint32_t index, std::span<const TokenLogprob> logprobs,
                                   std::string& out) {
  ChoiceAnswer& choice = choices_[index];
  const bool first = !std::exchange(choice.begun, true);
  if (first) text_.insert(0, echo_of(index));
  if (shape_.stream) {
    std::visit(
        [&](auto& wire) {
          if (first) wire.begin_choice(index, out);
          if (!text_.empty() || !logprobs.empty()) wire.text(index, text_, logprobs, choice, out);
        },
        *wire_);
  }
  if (keeps_text()) {
    choice.text += text_;
    choice.logprobs.insert(choice.logprobs.end(), logprobs.begin(), logprobs.end());
  }
}

void AnswerEncoder::Dialogue::end_choice(std::uint32_t index, FinishReason reason,
                                         std::string& out) {
  ChoiceAnswer& choice = choices_[index];
  if (!choice.begun) {
    text_.clear();
    show(index, {}, out);
  }
  choice.finish = reason;
  if (!shape_.stream) return;
  std::visit([&](auto& wire) { wire.end_choice(index, choice, out); }, *wire_);
}

void AnswerEncoder::Dialogue::finish(std::string& out) {
  Wire& wire = this->wire({});
  for (std::uint32_t index = 0; index < choices_.size(); ++index) {
    if (!choices_[index].finish) end_choice(index, FinishReason::kStop, out);
  }
  if (!shape_.stream) return append_whole(out);
  std::visit([&](auto& encoder) { encoder.end(choices_.front(), usage_, out); }, wire);
}

void AnswerEncoder::Dialogue::fail(const ApiError& error, std::string& out) {
  std::visit([&](auto& encoder) { encoder.fail(choices_.front(), error, out); }, wire({}));
}

void AnswerEncoder::Dialogue::append_whole(std::string& out) {
  if (const auto* responses = std::get_if<ResponsesEncoder>(&*wire_)) {
    return responses->whole(choices_.front(), usage_, out);
  }
  const bool chat = shape_.dialect == Dialect::kChat;
  append_answer_head(out, identity_, chat ? "chat.completion" : "text_completion",
                     shape_.service_tier);
  for (std::size_t index = 0; index < choices_.size(); ++index) {
    out += index == 0 ? R"({"index":)" : R"(,{"index":)";
    out += std::to_string(index);
    if (chat) {
      ChatEncoder::whole_choice(choices_[index], out);
    } else {
      CompletionEncoder::whole_choice(choices_[index], out);
    }
    out += '}';
  }
  out += R"(],"usage":)";
  append_usage(out, usage_);
  out += '}';
}

std::string_view AnswerEncoder::Dialogue::echo_of(std::uint32_t index) const noexcept {
  if (shape_.echo.empty()) return {};
  const std::size_t each = std::max<std::size_t>(choices_.size() / shape_.echo.size(), 1);
  return shape_.echo[std::min(index / each, shape_.echo.size() - 1)];
}

AnswerEncoder::AnswerEncoder(AnswerShape shape, std::string id,
                             std::chrono::system_clock::time_point created, std::uint32_t choices)
    : dialogue_(std::make_unique<Dialogue>(
          std::move(shape), id,
          static_cast<std::uint64_t>(std::chrono::system_clock::to_time_t(created)), choices)) {}
AnswerEncoder::~AnswerEncoder() = default;
AnswerEncoder::AnswerEncoder(AnswerEncoder&&) noexcept = default;
AnswerEncoder& AnswerEncoder::operator=(AnswerEncoder&&) noexcept = default;

void AnswerEncoder::add(std::span<const ReceivedDelta> deltas, std::uint32_t first_choice,
                        std::string& out) {
  dialogue_->add(deltas, first_choice, out);
}

void AnswerEncoder::finish(std::string& out) { dialogue_->finish(out); }

void AnswerEncoder::fail(const ApiError& error, std::string& out) { dialogue_->fail(error, out); }

const Usage& AnswerEncoder::usage() const noexcept { return dialogue_->usage(); }

}  // namespace sluice
