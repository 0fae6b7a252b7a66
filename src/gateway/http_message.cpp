#include "gateway/http_message.h"

#include <strings.h>

#include <algorithm>

namespace sluice {

bool same_word(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

const std::string* HttpHeaders::find(std::string_view name) const noexcept {
  const auto found = std::find_if(fields_.begin(), fields_.end(), [name](const auto& field) {
    return same_word(field.first, name);
  });
  return found == fields_.end() ? nullptr : &found->second;
}

std::string_view HttpHeaders::value(std::string_view name) const noexcept {
  const std::string* found = find(name);
  return found == nullptr ? std::string_view() : std::string_view(*found);
}

std::size_t HttpHeaders::count(std::string_view name) const noexcept {
  return static_cast<std::size_t>(
      std::count_if(fields_.begin(), fields_.end(),
                    [name](const auto& field) { return same_word(field.first, name); }));
}

void HttpHeaders::remove(std::string_view name) noexcept {
  std::erase_if(fields_, [name](const auto& field) { return same_word(field.first, name); });
}

}  // namespace sluice
