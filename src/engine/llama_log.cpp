#include "engine/llama_log.h"

#include <llama.h>
#include <log.h>

#include <cstddef>
#include <string_view>

#include "base/check.h"
#include "base/log.h"

namespace sluice {
namespace {

constexpr std::size_t kMostErrorBytes = 1024;

// The library logs through one callback for the whole process; by thread, its lines find the call
// that they belong to.
thread_local std::string* collected_errors = nullptr;

std::string_view without_line_end(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

// "llama_model_load: error loading model: …" → "error loading model: …"
std::string_view without_function_name(std::string_view text) {
  const std::size_t colon = text.find(": ");
  const std::string_view name = text.substr(0, colon);
  const bool is_name = colon != std::string_view::npos && name.find(' ') == std::string_view::npos;
  return is_name ? text.substr(colon + 2) : text;
}

void take_log(ggml_log_level level, const char* text, void* /*user_data*/) {
  const std::string_view line = without_line_end(text);
  if (line.empty() || line == ".") return;  // dots are its progress
  log_debug("llama", line);
  if (level != GGML_LOG_LEVEL_ERROR || collected_errors == nullptr) return;
  const std::string_view message = without_function_name(line);
  if (collected_errors->size() + message.size() > kMostErrorBytes) return;
  if (!collected_errors->empty()) *collected_errors += "; ";
  *collected_errors += message;
}

}  // namespace

void route_llama_log() {
  llama_log_set(take_log, nullptr);
  constexpr int kNothing =
      -1;  // llama-common's own logger, which would start a thread that writes to stderr
  common_log_set_verbosity_thold(kNothing);
}

LlamaErrors::LlamaErrors() {
  CHECK(collected_errors == nullptr, "one at a time for each thread");
  collected_errors = &lines_;
}

LlamaErrors::~LlamaErrors() { collected_errors = nullptr; }

std::string LlamaErrors::text() const { return lines_.empty() ? "no reason given" : lines_; }

}  // namespace sluice
