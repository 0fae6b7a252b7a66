#include "tools/mime_type.h"

#include <algorithm>
#include <utility>

#include "contract/utf8.h"

namespace sluice {
namespace {

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".flac", "audio/flac"}, {".gif", "image/gif"},       {".jpeg", "image/jpeg"},
    {".jpg", "image/jpeg"},  {".mp3", "audio/mpeg"},      {".ogg", "audio/ogg"},
    {".png", "image/png"},   {".pdf", "application/pdf"}, {".wav", "audio/wav"},
    {".webp", "image/webp"},
};

bool ends_with_any_case(std::string_view text, std::string_view lower_case_end) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return text.size() >= lower_case_end.size() &&
         std::equal(lower_case_end.rbegin(), lower_case_end.rend(), text.rbegin(),
                    [&](char end, char c) { return end == lower(c); });
}

}  // namespace

std::string_view mime_type_of(std::string_view path, std::string_view bytes) noexcept {
  for (const auto& [extension, type] : kTypes) {
    if (ends_with_any_case(path, extension)) return type;
  }
  const bool text = bytes.find('\0') == std::string_view::npos && !find_invalid_utf8(bytes);
  return text ? "text/plain" : "application/octet-stream";
}

}  // namespace sluice
