// The bodies that hold a list: embeddings and models.
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/base64.h"
#include "gateway/json_text.h"
#include "gateway/openai_response.h"
#include "gateway/replica_links.h"
#include "gateway/replica_pool.h"

namespace sluice {
namespace {

std::string little_endian(const std::vector<float>& vector) {
  std::string bytes;
  bytes.reserve(vector.size() * sizeof(float));
  for (const float value : vector) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 0xFF);
  }
  return bytes;
}

void append_vector(std::string& out, const std::vector<float>& vector, bool base64) {
  if (base64) return append_json_string(out, to_base64(little_endian(vector)));
  out += '[';
  for (std::size_t i = 0; i < vector.size(); ++i) {
    if (i > 0) out += ',';
    append_json_number(out, vector[i]);
  }
  out += ']';
}

void append_model(std::string& out, std::string_view id, const ModelEntry& model) {
  out += R"({"id":)";
  append_json_string(out, id);
  out += R"(,"object":"model","created":0,"owned_by":"sluice","root":)";
  append_json_string(out, model.name);
  out += R"(,"max_model_len":)";
  append_json_number(out, std::uint64_t{model.context_tokens});
  out += '}';
}

}  // namespace

std::string embeddings_json(const EmbedAnswer& answer, bool base64) {
  std::string out = R"({"object":"list","data":[)";
  for (std::size_t i = 0; i < answer.embeddings.size(); ++i) {
    out += i == 0 ? "" : ",";
    out += R"({"object":"embedding","index":)";
    append_json_number(out, std::uint64_t{i});
    out += R"(,"embedding":)";
    append_vector(out, answer.embeddings[i], base64);
    out += '}';
  }
  out += R"(],"model":)";
  append_json_string(out, answer.model);
  out += R"(,"usage":{"prompt_tokens":)";
  append_json_number(out, std::uint64_t{answer.prompt_tokens});
  out += R"(,"total_tokens":)";
  append_json_number(out, std::uint64_t{answer.prompt_tokens});
  out += "}}";
  return out;
}

std::string models_json(const std::vector<ModelEntry>& models) {
  std::string out = R"({"object":"list","data":[)";
  bool first = true;
  const auto append = [&](std::string_view id, const ModelEntry& model) {
    if (!first) out += ',';
    first = false;
    append_model(out, id, model);
  };
  for (const ModelEntry& model : models) {
    append(model.name, model);
    for (const std::string& alias : model.aliases) append(alias, model);
  }
  out += "]}";
  return out;
}

std::string model_json(const ModelEntry& model) {
  std::string out;
  append_model(out, model.name, model);
  return out;
}

}  // namespace sluice
