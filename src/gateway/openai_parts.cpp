#include "gateway/openai_parts.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/base64.h"

namespace sluice {
namespace {

constexpr std::string_view kDataScheme = "data:";
constexpr std::string_view kBase64Mark = ";base64";
constexpr std::string_view kAnyBytes = "application/octet-stream";
constexpr std::size_t kMaxMimeBytes = 127;  // RFC 4288, section 4.2

bool is_mime_type(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kMaxMimeBytes &&
         std::count(text.begin(), text.end(), '/') == 1 &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                  std::string_view("/.+-_").find(c) != std::string_view::npos;
         });
}

void take_base64(Fields& fields, std::string_view name, std::string_view text, Part& part) {
  auto bytes = from_base64(text);
  if (!bytes) {
    fields.fail(name, "must hold valid base64");
    return;
  }
  part.bytes = std::move(*bytes);
}

// RFC 2397, base64 alone.
void take_data_url(Fields& fields, std::string_view name, std::string_view url, Part& part) {
  const std::size_t comma = url.find(',');
  std::string_view head = url.substr(kDataScheme.size(), comma - kDataScheme.size());
  const bool base64 = comma != std::string_view::npos && head.size() >= kBase64Mark.size() &&
                      head.substr(head.size() - kBase64Mark.size()) == kBase64Mark;
  const std::string_view type = head.substr(0, head.find(';'));
  if (!base64 || !is_mime_type(type)) {
    fields.fail(name, "must be data:TYPE/SUBTYPE;base64,…");
    return;
  }
  part.mime_type = type;
  take_base64(fields, name, url.substr(comma + 1), part);
}

void take_image(Fields& fields, std::string_view name, Part& part) {
  const std::string_view url = fields.text(name);
  if (url.substr(0, kDataScheme.size()) == kDataScheme) {
    take_data_url(fields, name, url, part);
  } else if (url.empty()) {
    fields.fail_missing(name);
  } else {
    fields.fail_unsupported(name, "must be a data: URL; nothing is fetched from elsewhere");
  }
}

void read_image(Fields& fields, Part& part) {
  if (fields.has("file_id")) return fields.fail_unsupported("file_id");
  if (fields.kind("image_url") != FieldKind::kObject) return take_image(fields, "image_url", part);
  auto image = fields.object("image_url");
  take_image(*image, "url", part);
}

void read_audio(Fields& fields, Part& part) {
  auto audio = fields.object("input_audio");
  if (!audio) return fields.fail_missing("input_audio");
  const std::string_view format = audio->text("format");
  if (format == "wav" || format == "flac") {
    part.mime_type = std::string("audio/") + std::string(format);
  } else if (format == "mp3") {
    part.mime_type = "audio/mpeg";
  } else {
    audio->fail("format", "must be \"wav\", \"mp3\" or \"flac\"");
  }
  if (!audio->has("data")) audio->fail_missing("data");
  take_base64(*audio, "data", audio->text("data"), part);
}

void read_file(Fields& file, Part& part) {
  for (const std::string_view elsewhere : {"file_id", "file_url"}) {
    if (file.has(elsewhere)) return file.fail_unsupported(elsewhere);
  }
  const std::string_view data = file.text("file_data");
  if (data.empty()) return file.fail_missing("file_data");
  if (data.substr(0, kDataScheme.size()) == kDataScheme) {
    return take_data_url(file, "file_data", data, part);
  }
  part.mime_type = kAnyBytes;
  take_base64(file, "file_data", data, part);
}

void read_text(Fields& fields, std::string_view name, Part& part) {
  if (!fields.read(name, part.bytes)) fields.fail_missing(name);
}

}  // namespace

Part read_part(Fields& fields) {
  Part part;
  const std::string_view type = fields.text("type");
  if (type == "text" || type == "input_text" || type == "output_text") {
    read_text(fields, "text", part);
  } else if (type == "refusal") {
    read_text(fields, "refusal", part);
  } else if (type == "image_url" || type == "input_image") {
    read_image(fields, part);
  } else if (type == "input_audio") {
    read_audio(fields, part);
  } else if (type == "input_file") {
    read_file(fields, part);
  } else if (type == "file") {
    if (auto file = fields.object("file")) {
      read_file(*file, part);
    } else {
      fields.fail_missing("file");
    }
  } else {
    fields.fail("type", "must be text, image_url, input_audio, file or refusal");
  }
  return part;
}

}  // namespace sluice
