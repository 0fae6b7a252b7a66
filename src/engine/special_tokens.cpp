#include "engine/special_tokens.h"

#include <algorithm>

namespace sluice {
namespace {

unsigned char first_byte(std::string_view text) { return static_cast<unsigned char>(text.front()); }

}  // namespace

SpecialTokens::SpecialTokens(std::vector<SpecialToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const SpecialToken& special) { return special.text.size() < 2; });
  std::sort(tokens_.begin(), tokens_.end(), [](const SpecialToken& a, const SpecialToken& b) {
    if (a.text.front() != b.text.front()) return first_byte(a.text) < first_byte(b.text);
    return a.text.size() > b.text.size();
  });
  for (const SpecialToken& special : tokens_) ++first_with_byte_[first_byte(special.text) + 1U];
  for (std::size_t byte = 1; byte < first_with_byte_.size(); ++byte) {
    first_with_byte_[byte] += first_with_byte_[byte - 1];
  }
}

const SpecialToken* SpecialTokens::at(std::string_view text, std::size_t position) const noexcept {
  const std::string_view rest = text.substr(position);
  if (rest.empty()) return nullptr;
  const std::size_t end = first_with_byte_[first_byte(rest) + 1U];
  for (std::size_t i = first_with_byte_[first_byte(rest)]; i < end; ++i) {
    if (rest.starts_with(tokens_[i].text)) return &tokens_[i];
  }
  return nullptr;
}

std::string SpecialTokens::broken_up(std::string_view text, std::string_view mark) const {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (at(text, i) != nullptr) result += mark;
  }
  return result;
}

}  // namespace sluice
