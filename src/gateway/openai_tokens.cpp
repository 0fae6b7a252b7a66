#include "gateway/openai_tokens.h"

#include <algorithm>
#include <string_view>

#include "contract/utf8.h"
#include "gateway/json_text.h"

namespace sluice {
namespace {

void append_count(std::string& out, std::string_view key, std::uint64_t count) {
  out += key;
  append_json_number(out, count);
}

void append_piece(std::string& out, std::string_view piece) {
  if (!find_invalid_utf8(piece)) return append_json_string(out, piece);
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\"bytes:";
  for (const char c : piece) {
    const auto byte = static_cast<std::uint8_t>(c);
    out += R"(\\x)";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xF];
  }
  out += '"';
}

// Without the closing brace.
void append_candidate(std::string& out, const TokenLogprob::Candidate& candidate) {
  out += R"({"token":)";
  append_piece(out, candidate.piece);
  out += R"(,"logprob":)";
  append_json_number(out, candidate.logprob);
  out += R"(,"bytes":[)";
  for (std::size_t i = 0; i < candidate.piece.size(); ++i) {
    if (i > 0) out += ',';
    append_json_number(out, std::uint64_t{static_cast<std::uint8_t>(candidate.piece[i])});
  }
  out += ']';
}

// `write(item)` for each, with commas between them.
template <typename Items, typename Write>
void append_list(std::string& out, const Items& items, Write write) {
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    write(item);
  }
}

void append_top_by_name(std::string& out, const TokenLogprob& logprob) {
  out += '{';
  append_list(out, logprob.top, [&out](const TokenLogprob::Candidate& candidate) {
    append_piece(out, candidate.piece);
    out += ':';
    append_json_number(out, candidate.logprob);
  });
  out += '}';
}

std::uint64_t characters_in(std::string_view piece) noexcept {
  return static_cast<std::uint64_t>(std::count_if(piece.begin(), piece.end(), [](char c) {
    return (static_cast<std::uint8_t>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

void append_usage(std::string& out, const Usage& usage) {
  append_count(out, R"({"prompt_tokens":)", usage.prompt_tokens);
  append_count(out, R"(,"completion_tokens":)", usage.completion_tokens);
  append_count(out, R"(,"total_tokens":)",
               std::uint64_t{usage.prompt_tokens} + usage.completion_tokens);
  append_count(out, R"(,"prompt_tokens_details":{"cached_tokens":)", usage.cached_tokens);
  append_count(out, R"(,"cache_write_tokens":)", usage.cache_write_tokens);
  out += R"(},"completion_tokens_details":{"reasoning_tokens":0,"accepted_prediction_tokens":0,)"
         R"("rejected_prediction_tokens":0}})";
}

void append_responses_usage(std::string& out, const Usage& usage) {
  append_count(out, R"({"input_tokens":)", usage.prompt_tokens);
  append_count(out, R"(,"input_tokens_details":{"cached_tokens":)", usage.cached_tokens);
  append_count(out, R"(,"cache_write_tokens":)", usage.cache_write_tokens);
  append_count(out, R"(},"output_tokens":)", usage.completion_tokens);
  append_count(out, R"(,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":)",
               std::uint64_t{usage.prompt_tokens} + usage.completion_tokens);
  out += '}';
}

void append_logprobs(std::string& out, std::span<const TokenLogprob> logprobs) {
  append_list(out, logprobs, [&out](const TokenLogprob& logprob) {
    append_candidate(out, logprob.chosen);
    out += R"(,"top_logprobs":[)";
    append_list(out, logprob.top, [&out](const TokenLogprob::Candidate& candidate) {
      append_candidate(out, candidate);
      out += '}';
    });
    out += "]}";
  });
}

void append_completion_logprobs(std::string& out, std::span<const TokenLogprob> logprobs,
                                std::uint64_t& characters) {
  out += R"({"tokens":[)";
  append_list(out, logprobs,
              [&out](const TokenLogprob& logprob) { append_piece(out, logprob.chosen.piece); });
  out += R"(],"token_logprobs":[)";
  append_list(out, logprobs, [&out](const TokenLogprob& logprob) {
    append_json_number(out, logprob.chosen.logprob);
  });
  out += R"(],"top_logprobs":[)";
  append_list(out, logprobs,
              [&out](const TokenLogprob& logprob) { append_top_by_name(out, logprob); });
  out += R"(],"text_offset":[)";
  append_list(out, logprobs, [&out, &characters](const TokenLogprob& logprob) {
    append_json_number(out, characters);
    characters += characters_in(logprob.chosen.piece);
  });
  out += "]}";
}

}  // namespace sluice
