#include "access/key_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sstream>
#include <system_error>

#include "access/hex.h"
#include "base/concat.h"
#include "base/descriptor.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> unwritable(const fs::path& path) {
  return fail(Code::kUnavailable,
              concat("can't write ", path.string(), " (--api-keys): ", std::strerror(errno)));
}

Result<void> replace_text(const fs::path& path, const std::string& text) {
  std::string scratch = path.string() + ".XXXXXX";
  const Descriptor file(::mkstemp(scratch.data()));  // mode 0600
  if (file.get() < 0) return unwritable(path);
  const auto size = static_cast<ssize_t>(text.size());
  if (::write(file.get(), text.data(), text.size()) != size || ::fsync(file.get()) != 0 ||
      ::rename(scratch.c_str(), path.c_str()) != 0) {
    auto failure = unwritable(path);
    ::unlink(scratch.c_str());
    return failure;
  }
  return {};
}

// Reads the text, changes it and writes it back while nobody else does. A lock on the folder leaves
// no lock file behind.
Result<void> edit(const std::string& given, bool make,
                  const std::function<Result<void>(std::string&)>& change) {
  std::error_code error;
  const bool exists = fs::exists(given, error);
  const fs::path path = exists ? fs::canonical(given, error)
                               : fs::absolute(given, error);  // keeps a symbolic link one
  const Descriptor folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (error || folder.get() < 0 || ::flock(folder.get(), LOCK_EX) != 0) return unwritable(given);
  // It would be replaced by a file: /dev/null, too.
  if (exists && !fs::is_regular_file(path, error))
    return invalid(concat(given, " (--api-keys) is not a file"));

  auto text = read_key_file(path);
  if (!text && make && !fs::exists(path, error)) text = std::string{};
  if (!text) return tl::unexpected(std::move(text.error()));
  auto parsed = parse_keys(*text);
  if (!parsed) return invalid(concat(given, " (--api-keys): ", parsed.error().message));
  if (auto changed = change(*text); !changed) return changed;
  return replace_text(path, *text);
}

// Whether they come back from the file as they are.
Result<void> check_limits(const KeyLimits& limits) {
  for (const std::string& model : limits.models) {
    if (model.empty() || model.find_first_of(", \t\r\n\v\f") != std::string::npos)
      return invalid("--models holds a name that is empty or has a comma or a space in it");
  }
  KeyLimits read;
  std::istringstream fields(to_text(limits));
  for (std::string field; fields >> field;) {
    if (auto parsed = parse_key_limit(field, read); !parsed) return parsed;
  }
  return {};
}

}  // namespace

Result<std::string> add_key(const std::string& path, const std::string& name,
                            const KeyLimits& limits) {
  if (auto checked = check_limits(limits); !checked)
    return tl::unexpected(std::move(checked.error()));
  const std::string key = make_key();
  const auto added = edit(path, true, [&](std::string& text) -> Result<void> {
    if (!text.empty() && text.back() != '\n') text += '\n';
    text += concat(name, ' ', to_hex(sha256(key)), to_text(limits), '\n');
    const auto parsed = parse_keys(text);
    if (!parsed || parsed->empty() || parsed->back().name != name) {  // "#x" would be a comment
      return invalid("--name is taken, or is not 1 to 64 of A-Z a-z 0-9 . _ -");
    }
    return {};
  });
  if (!added) return tl::unexpected(added.error());
  return key;
}

Result<void> revoke_key(const std::string& path, const std::string& name) {
  return edit(path, false, [&](std::string& text) -> Result<void> {
    std::istringstream lines(text);
    std::string kept;
    std::string line;
    bool found = false;
    while (std::getline(lines, line)) {
      std::string first;
      std::istringstream(line) >> first;
      if (first == name) {
        found = true;
      } else {
        kept += line + '\n';
      }
    }
    if (!found || name.empty())
      return fail(Code::kNotFound, concat("no key of that --name in ", path, " (--api-keys)"));
    text = std::move(kept);
    return {};
  });
}

Result<std::vector<ApiKey>> list_keys(const std::string& path) {
  auto text = read_key_file(path);
  if (!text) return tl::unexpected(std::move(text.error()));
  auto keys = parse_keys(*text);
  if (!keys) return invalid(concat(path, " (--api-keys): ", keys.error().message));
  return keys;
}

}  // namespace sluice
