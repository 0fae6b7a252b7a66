#include "engine/script.h"

#include <charconv>
#include <optional>
#include <utility>

#include "base/concat.h"
#include "base/read_file.h"

namespace sluice {
namespace {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string_view take_word(std::string_view& rest) {
  rest = trim(rest);
  const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest = trim(rest.substr(end));
  return word;
}

std::optional<char> escaped(std::string_view text, std::size_t& at) {
  switch (text[at++]) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case '"':
      return '"';
    case '\\':
      return '\\';
    case 'x': {
      if (at + 2 > text.size()) return std::nullopt;
      unsigned value = 0;
      const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + 2, value, 16);
      if (error != std::errc{} || end != text.data() + at + 2) return std::nullopt;
      at += 2;
      return static_cast<char>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<std::string> take_quoted(std::string_view& rest) {
  if (rest.empty() || rest.front() != '"') return std::nullopt;
  std::string text;
  for (std::size_t at = 1; at < rest.size();) {
    const char c = rest[at++];
    if (c == '"') {
      rest = trim(rest.substr(at));
      return text;
    }
    if (c != '\\') {
      text += c;
      continue;
    }
    if (at == rest.size()) return std::nullopt;
    const std::optional<char> special = escaped(rest, at);
    if (!special) return std::nullopt;
    text += *special;
  }
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> take_delay(std::string_view& rest) {
  const std::string_view word = take_word(rest);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(word.data() + word.size() - end));
  if (error != std::errc{} || number < 0 || number > 86'400'000) return std::nullopt;
  if (unit == "ms") return std::chrono::milliseconds(number);
  if (unit == "s") return std::chrono::seconds(number);
  return std::nullopt;
}

bool parse_line(std::string_view line, Script& script) {
  using Kind = ScriptStep::Kind;
  const std::string_view word = take_word(line);
  ScriptStep step;
  if (word == "prefill") {
    const auto delay = take_delay(line);
    script.prefill = delay.value_or(std::chrono::milliseconds{0});
    return delay.has_value() && line.empty();
  }
  if (word == "piece" || word == "fail" || word == "break") {
    step.kind = word == "piece" ? Kind::kPiece : word == "fail" ? Kind::kFail : Kind::kBreak;
    auto text = take_quoted(line);
    if (!text) return false;
    step.text = std::move(*text);
    if (step.kind == Kind::kPiece && !line.empty()) {
      const auto delay = take_delay(line);
      if (!delay) return false;
      step.delay = *delay;
    }
  } else if (word == "echo") {
    step.kind = Kind::kEcho;
  } else if (word == "hang") {
    step.kind = Kind::kHang;
  } else if (word == "block") {
    step.kind = Kind::kBlock;
  } else if (word == "loop") {
    step.kind = Kind::kLoop;
  } else {
    return false;
  }
  script.steps.push_back(std::move(step));
  return line.empty();
}

}  // namespace

Script Script::endless() {
  Script script;
  script.steps = {{ScriptStep::Kind::kPiece, "token ", {}}, {ScriptStep::Kind::kLoop, {}, {}}};
  return script;
}

Result<Script> Script::parse(std::string_view text) {
  Script script;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    if (!parse_line(line, script))
      return invalid(concat("line ", number, ": not a directive of a script"));
    if (script.steps.size() > kMaxDirectives)
      return invalid(concat("line ", number, ": more than ", kMaxDirectives, " directives"));
  }
  const auto loops = !script.steps.empty() && script.steps.front().kind == ScriptStep::Kind::kLoop;
  if (loops) return invalid("a script can't begin with loop");
  return script;
}

Result<Script> Script::load(const std::string& path) {
  const auto text = read_file(path, "--script", kMostBytes);
  if (!text) return tl::unexpected(text.error());
  auto script = parse(*text);
  if (!script) return invalid(concat("the script ", path, " (--script): ", script.error().message));
  return script;
}

}  // namespace sluice
