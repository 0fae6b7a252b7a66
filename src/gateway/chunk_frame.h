// ChunkFrame: the bytes that are the same in each chunk of one streamed answer (chat and
// completions), made once: what stands before a choice and what stands behind it. A chunk is one
// SSE frame. Thread: any one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "contract/generation.h"
#include "gateway/openai_request.h"

namespace sluice {

// What every chunk, and the whole answer, says of itself.
struct AnswerIdentity {
  std::string id;  // with its prefix
  std::uint64_t created = 0;
  std::string model;
};

// {"id":…,"object":…,"created":…,"model":…,"service_tier":…,"choices":[
void append_answer_head(std::string& out, const AnswerIdentity& identity, std::string_view object,
                        std::string_view service_tier);

class ChunkFrame {
 public:
  ChunkFrame(const AnswerIdentity& identity, std::string_view object, const AnswerShape& shape);

  // Up to and with the choice's index.
  void open(std::uint32_t index, std::string& out) const;
  // From behind the choice's last member.
  void close(std::string& out) const { out += tail_; }
  // The last frames of an answer that is whole: usage, if it was asked for, and [DONE].
  void end(const Usage& usage, std::string& out) const;

 private:
  std::string head_;
  std::string tail_;
  bool include_usage_;
};

// The last frame of one that isn't. No [DONE]: it means success to some clients.
void append_error_frame(std::string& out, const ApiError& error);

}  // namespace sluice
