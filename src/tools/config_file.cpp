#include "tools/config_file.h"

#include <toml++/toml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/concat.h"
#include "base/read_file.h"

namespace sluice {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;

struct Setting {
  std::int64_t line = 0;
  std::string key;
  const toml::node* value = nullptr;
};

std::vector<Setting> by_line(const toml::table& table) {
  std::vector<Setting> settings;
  for (const auto& [key, value] : table)
    settings.push_back({key.source().begin.line, std::string(key.str()), &value});
  std::sort(settings.begin(), settings.end(),
            [](const Setting& a, const Setting& b) { return a.line < b.line; });
  return settings;
}

enum class Kind { kBoolean, kNumber, kSize, kText, kTexts };

// A flag takes values like its default. Sizes may have a unit: "50MiB".
Kind kind_of(const CLI::Option& option) {
  const std::string example = option.get_default_str();
  if (option.get_items_expected_max() == 0 || example == "true" || example == "false")
    return Kind::kBoolean;
  if (option.get_items_expected_max() > 1) return Kind::kTexts;
  double number = 0;
  const char* const end = example.data() + example.size();
  const auto [parsed, error] = std::from_chars(example.data(), end, number);
  if (error != std::errc() || parsed != end) return Kind::kText;
  // the type's name goes on with what the value is checked for
  return option.get_type_name().rfind("bytes", 0) == 0 ? Kind::kSize : Kind::kNumber;
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kBoolean:
      return "true or false";
    case Kind::kNumber:
      return "a number";
    case Kind::kSize:
      return "a number of bytes, or a text like \"50MiB\"";
    case Kind::kText:
      return "a text";
    case Kind::kTexts:
      return "a text or an array of texts";
  }
  return "";
}

// The value as the command line would have it; nothing if it is of another kind.
std::optional<std::vector<std::string>> words_of(const toml::node& value, Kind kind) {
  std::vector<std::string> words;
  if (kind == Kind::kBoolean && value.is_boolean()) {
    words.emplace_back(value.ref<bool>() ? "true" : "false");
  } else if ((kind == Kind::kNumber || kind == Kind::kSize) && value.is_integer()) {
    words.push_back(std::to_string(value.ref<std::int64_t>()));
  } else if (kind == Kind::kNumber && value.is_floating_point()) {
    std::array<char, 32> text;  // the shortest that is this number again
    const auto end = std::to_chars(text.begin(), text.end(), value.ref<double>()).ptr;
    words.emplace_back(text.data(), end);
  } else if (kind >= Kind::kSize && value.is_string()) {
    words.push_back(value.ref<std::string>());
  } else if (kind == Kind::kTexts && value.is_array()) {
    for (const toml::node& element : *value.as_array()) {
      if (!element.is_string()) return std::nullopt;
      words.push_back(element.ref<std::string>());
    }
  } else {
    return std::nullopt;
  }
  if (words.empty()) words.emplace_back();  // add_list's word for an empty list
  return words;
}

}  // namespace

// CLI11 asks it for the file's contents once it has read the command line. It hands them to the
// flags itself, one by one, for only here is it known which line each came from.
class ConfigFile::Reader : public CLI::ConfigTOML {
 public:
  explicit Reader(CLI::App& app) : app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream&) const override {
    const std::string file = app_.get_config_ptr()->as<std::string>();
    if (const auto text = read_file(file, "--config", kMostBytes); !text) {
      result_ = tl::unexpected(text.error());
    } else {
      result_ = read(file, *text);
    }
    return {};
  }

  [[nodiscard]] const Result<void>& result() const noexcept { return result_; }

 private:
  [[nodiscard]] Result<void> read(const std::string& file, const std::string& text) const try {
    const toml::table table = toml::parse(text);
    std::map<const CLI::Option*, std::int64_t> seen;
    for (const Setting& setting : by_line(table)) {
      if (auto done = apply(setting, seen); !done)
        return invalid(concat(file, ':', setting.line, ": ", done.error().message));
    }
    return {};
  } catch (const toml::parse_error& error) {
    return invalid(concat(file, ':', static_cast<std::int64_t>(error.source().begin.line), ": ",
                          error.description()));
  }

  Result<void> apply(const Setting& setting, std::map<const CLI::Option*, std::int64_t>& seen) const
      try {
    if (setting.value->is_table() || setting.value->is_array_of_tables())
      return invalid(concat("[", setting.key, "]: flags have no sections"));
    CLI::Option* const option = app_.get_option_no_throw("--" + setting.key);
    if (option == nullptr || !option->get_configurable())
      return invalid(concat("no flag of a file is named --", setting.key));
    if (const auto [earlier, first] = seen.emplace(option, setting.line); !first)
      return invalid(concat("line ", earlier->second, " sets the same flag as ", setting.key));
    const Kind kind = kind_of(*option);
    const auto words = words_of(*setting.value, kind);
    if (!words) return invalid(concat(setting.key, " is ", name_of(kind)));
    if (option->count() > 0) return {};  // the command line's
    option->add_result(*words);
    option->run_callback();
    return {};
  } catch (const CLI::Error& error) {
    return invalid(error.what());
  }

  CLI::App& app_;
  mutable Result<void> result_;  // CLI11 calls from_config const
};

ConfigFile::ConfigFile(CLI::App& app) : reader_(std::make_shared<Reader>(app)) {
  app.set_config("--config", "", "A TOML file with flags, without their dashes, as keys")
      ->type_name("FILE")
      ->check([](const std::string& file) { return file.empty() ? "no file is named" : ""; });
  app.config_formatter(reader_);
}

ConfigFile::~ConfigFile() = default;

Result<void> ConfigFile::result() const { return reader_->result(); }

}  // namespace sluice
