#include "contract/validate.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/concat.h"
#include "contract/utf8.h"

namespace sluice {
namespace {

// OpenAI's words: by them client libraries know that another model may take the prompt.
constexpr std::string_view kContextLength = "this model's maximum context length is ";

// The contract's own ranges, the same for every server.
constexpr float kMaxTemperature = 2.0F;
constexpr float kMaxPenalty = 2.0F;
// Far less than that would lift logits beyond what a float holds.
constexpr float kMinRepetitionPenalty = 0.01F;
constexpr float kMaxRepetitionPenalty = 10.0F;
constexpr float kMaxLogitBias = 100.0F;

// A range that NaN and the infinities are never in.
struct Range {
  float low;
  float high;
  bool above_low = false;  // `low` itself is out
  [[nodiscard]] bool holds(float value) const noexcept {
    return (above_low ? value > low : value >= low) && value <= high;
  }
};

// Ranges have two decimals at most; std::to_string would write six.
std::string number(float value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

Result<void> in_range(float value, std::string_view field, Range range) {
  if (range.holds(value)) return {};
  return invalid(concat(field, " must be ", range.above_low ? "above " : "from ", number(range.low),
                        range.above_low ? " and up to " : " to ", number(range.high)));
}

Result<void> in_range(std::int64_t value, std::string_view field, std::int64_t low,
                      std::int64_t high) {
  if (value >= low && value <= high) return {};
  return invalid(concat(field, " must be from ", low, " to ", high, "; it is ", value));
}

Result<void> at_least(std::int64_t value, std::string_view field, std::int64_t low) {
  if (value >= low) return {};
  return invalid(concat(field, " must be at least ", low, "; it is ", value));
}

Result<void> within_limit(std::size_t count, std::string_view what, std::uint64_t limit,
                          std::string_view flag) {
  if (count <= limit) return {};
  return invalid(concat(what, ": ", count, " is more than the limit of ", limit, " (", flag, ")"));
}

// A bound of the contract's own, without a flag.
Result<void> at_most_bytes(std::string_view text, std::string_view field, std::size_t most) {
  if (text.size() <= most) return {};
  return invalid(concat(field, " has ", text.size(), " bytes; at most ", most, " are allowed"));
}

Result<void> first_fault(std::initializer_list<Result<void>> checks) {
  for (const Result<void>& check : checks) {
    if (!check) return check;
  }
  return {};
}

Result<void> validate_logit_bias(const Sampling& sampling, const Limits& limits,
                                 const ServedModel& model) {
  if (auto fits = within_limit(sampling.logit_bias.size(), "logit_bias entries",
                               limits.max_logit_bias, "--max-logit-bias");
      !fits) {
    return fits;
  }
  for (const auto& [token, bias] : sampling.logit_bias) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= model.vocabulary) {
      return invalid(concat("logit_bias names token ", token, "; this model's tokens are 0 to ",
                            std::int64_t{model.vocabulary} - 1));
    }
    if (auto fits =
            in_range(bias, concat("logit_bias of token ", token), {-kMaxLogitBias, kMaxLogitBias});
        !fits) {
      return fits;
    }
  }
  return {};
}

Result<void> validate_sampling(const Sampling& sampling, const Limits& limits,
                               const ServedModel& model) {
  if (auto fits = first_fault({
          in_range(sampling.temperature, "temperature", {0, kMaxTemperature}),
          in_range(sampling.top_p, "top_p", {0, 1, true}),
          at_least(sampling.top_k, "top_k", 0),
          in_range(sampling.min_p, "min_p", {0, 1}),
          in_range(sampling.frequency_penalty, "frequency_penalty", {-kMaxPenalty, kMaxPenalty}),
          in_range(sampling.presence_penalty, "presence_penalty", {-kMaxPenalty, kMaxPenalty}),
          in_range(sampling.repetition_penalty, "repetition_penalty",
                   {kMinRepetitionPenalty, kMaxRepetitionPenalty}),
          in_range(sampling.top_logprobs.value_or(0), "top_logprobs", 0, kMaxTopLogprobs),
      });
      !fits) {
    return fits;
  }
  return validate_logit_bias(sampling, limits, model);
}

Result<void> validate_stopping(const Stopping& stopping, const Limits& limits) {
  if (auto fits = first_fault({
          at_least(stopping.max_tokens.value_or(1), "max_tokens", 1),
          at_least(stopping.min_tokens, "min_tokens", 0),
          within_limit(stopping.stop.size(), "stop strings", limits.max_stop_strings,
                       "--max-stop-strings"),
      });
      !fits) {
    return fits;
  }
  if (stopping.max_tokens && stopping.min_tokens > *stopping.max_tokens) {
    return invalid(concat("min_tokens (", stopping.min_tokens, ") must not be above max_tokens (",
                          *stopping.max_tokens, ")"));
  }
  for (std::size_t i = 0; i < stopping.stop.size(); ++i) {
    const std::string& stop = stopping.stop[i];
    const std::string field = concat("stop[", i, "]");
    if (stop.empty()) return invalid(concat(field, " must not be empty"));
    if (auto fits = within_limit(stop.size(), concat("bytes of ", field), limits.max_stop_bytes,
                                 "--max-stop-bytes");
        !fits) {
      return fits;
    }
    if (auto text = validate_text(stop, field); !text) return text;
  }
  return {};
}

bool is_text(const Part& part) noexcept {
  return part.mime_type.empty() || part.mime_type == "text/plain";
}

std::string part_name(std::size_t message, std::size_t part, std::size_t parts) {
  if (parts == 1) return concat("the content of messages[", message, "]");
  return concat("part ", part, " of messages[", message, "]");
}

std::uint64_t text_bytes(const PromptSource& prompt) noexcept {
  std::uint64_t bytes = prompt.raw ? prompt.raw->size() : 0;
  for (const Message& message : prompt.messages) {
    for (const Part& part : message.parts) bytes += is_text(part) ? part.bytes.size() : 0;
  }
  return bytes;
}

}  // namespace

Result<void> validate(const GenerationRequest& request, const Limits& limits,
                      const ServedModel& model) {
  if (auto known = validate_model_name(request.model, model); !known) return known;
  if (auto fits = validate_sampling(request.sampling, limits, model); !fits) return fits;
  if (auto fits = validate_stopping(request.stopping, limits); !fits) return fits;
  if (auto fits = at_least(request.n, "n", 1); !fits) return fits;
  if (auto fits = within_limit(static_cast<std::size_t>(request.n), "n", limits.max_n, "--max-n");
      !fits) {
    return fits;
  }
  if (auto fits = in_range(request.priority, "priority", -kMaxPriority, kMaxPriority); !fits) {
    return fits;
  }
  if (auto fits =
          first_fault({at_most_bytes(request.session_id, "session_id", kMaxSessionIdBytes),
                       at_most_bytes(request.cache.salt, "cache.salt", kMaxCacheSaltBytes)});
      !fits) {
    return fits;
  }
  return validate_prompt(request.prompt, limits, model);
}

Result<void> validate_model_name(std::string_view name, const ServedModel& model) {
  if (name == "local" || name == model.name) return {};
  return fail(Code::kNotFound, concat("model is not served here; there is \"local\", which is \"",
                                      model.name, "\""));
}

Result<void> validate_prompt(const PromptSource& prompt, const Limits& limits,
                             const ServedModel& model) {
  if (auto fits =
          within_limit(prompt.messages.size(), "messages", limits.max_messages, "--max-messages");
      !fits) {
    return fits;
  }
  // Cheap, and before anything reads the text: longer than this it can't fit, however it is
  // tokenised.
  const std::uint64_t most_bytes = std::uint64_t{model.context_tokens} * model.longest_piece;
  if (const std::uint64_t bytes = text_bytes(prompt); bytes > most_bytes) {
    return invalid(concat("the prompt has ", bytes, " bytes of text; ", kContextLength,
                          model.context_tokens, " tokens, which hold ", most_bytes, " at most"));
  }
  if (prompt.raw) return validate_text(*prompt.raw, "prompt");
  for (std::size_t i = 0; i < prompt.messages.size(); ++i) {
    const std::vector<Part>& parts = prompt.messages[i].parts;
    for (std::size_t j = 0; j < parts.size(); ++j) {
      if (!is_text(parts[j])) continue;
      if (auto text = validate_text(parts[j].bytes, part_name(i, j, parts.size())); !text) {
        return text;
      }
    }
  }
  return {};
}

Result<void> validate_text(std::string_view text, std::string_view field) {
  if (const auto at = find_invalid_utf8(text)) {
    return invalid(concat(field, " is not valid UTF-8 (byte ", *at, ")"));
  }
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos) {
    return invalid(concat(field, " holds a NUL (byte ", at, ")"));
  }
  return {};
}

Result<void> validate_prompt_tokens(std::size_t tokens, const ServedModel& model) {
  if (tokens < model.context_tokens) return {};
  return invalid(concat("the prompt has ", tokens, " tokens; ", kContextLength,
                        model.context_tokens, " tokens, one of them for the answer"));
}

}  // namespace sluice
