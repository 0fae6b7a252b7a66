// AnswerEncoder: a generation's deltas as the bytes of OpenAI's answer, streamed (SSE frames) or
// whole (JSON), in the dialect that was asked for. Holds back the bytes of a character that is not
// whole yet, at most three for each choice, and gives U+FFFD for what can't become one. Allocates
// nothing per token beyond its output. Bounded, unstreamed: by the answer, which max_tokens and the
// context bound. Thread: its I/O thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "contract/generation.h"
#include "gateway/openai_error.h"
#include "gateway/openai_request.h"

namespace sluice {

class AnswerEncoder {
 public:
  // `id`: unique, without its prefix (chatcmpl-, cmpl-, resp_). `choices`: of all generations
  // together.
  AnswerEncoder(AnswerShape shape, std::string id, std::chrono::system_clock::time_point created,
                std::uint32_t choices);
  ~AnswerEncoder();
  AnswerEncoder(AnswerEncoder&&) noexcept;
  AnswerEncoder& operator=(AnswerEncoder&&) noexcept;

  // Takes what arrived of one generation; `first_choice`: the number of its first choice. Streamed:
  // appends the frames to `out`, deltas of one choice that follow each other in one frame. Nothing
  // is appended before there is something to show, so that an error can still be an error.
  void add(std::span<const ReceivedDelta> deltas, std::uint32_t first_choice, std::string& out);
  void add(const ReceivedDelta& delta, std::uint32_t first_choice, std::string& out) {
    add(std::span(&delta, 1), first_choice, out);
  }

  // Everything has come. Streamed: appends the last frames (usage, [DONE]); whole: appends the JSON
  // body.
  void finish(std::string& out);

  // Streamed, instead of finish: the last event. No [DONE] after it.
  void fail(const ApiError& error, std::string& out);

  [[nodiscard]] const Usage& usage() const noexcept;  // of all generations so far

 private:
  class Dialogue;
  std::unique_ptr<Dialogue> dialogue_;
};

// The body of /v1/embeddings; `base64`: each vector as little-endian 32-bit floats.
struct EmbedAnswer;
[[nodiscard]] std::string embeddings_json(const EmbedAnswer& answer, bool base64);

struct ModelEntry;
[[nodiscard]] std::string models_json(const std::vector<ModelEntry>& models);
[[nodiscard]] std::string model_json(const ModelEntry& model);

}  // namespace sluice
