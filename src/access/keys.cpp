#include "access/keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <set>
#include <sstream>

#include "access/hex.h"
#include "base/concat.h"
#include "base/log.h"
#include "base/plain_word.h"
#include "base/read_file.h"

namespace sluice {
namespace {

constexpr std::size_t kMostFileBytes = 4 << 20;

std::optional<Sha256> parse_hash(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  Sha256 hash{};
  if (text.size() != hash.size() * 2) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    const auto digit = kDigits.find(lower);
    if (digit == std::string_view::npos) return std::nullopt;
    hash[i / 2] = static_cast<std::uint8_t>(hash[i / 2] << 4 | digit);
  }
  return hash;
}

bool is_name(std::string_view text) noexcept { return is_plain_word(text, ApiKey::kMaxNameBytes); }

// What follows the name.
Result<void> parse_fields(std::istringstream& fields, ApiKey& key) {
  std::string word;
  fields >> word;
  const auto hash = parse_hash(word);
  if (!hash || !is_name(key.name)) return invalid("it does not begin with `name sha256hex`");
  key.hash = *hash;
  while (fields >> word) {
    if (auto parsed = parse_key_limit(word, key.limits); !parsed) return parsed;
  }
  return {};
}

}  // namespace

Sha256 sha256(std::string_view text) noexcept {
  Sha256 hash;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
  return hash;
}

Result<std::vector<ApiKey>> parse_keys(std::string_view text) {
  std::vector<ApiKey> keys;
  std::set<std::string> names;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream fields(line);
    ApiKey key;
    if (!(fields >> key.name) || key.name.front() == '#') continue;
    if (auto parsed = parse_fields(fields, key); !parsed)
      return invalid(concat("line ", number, ": ", parsed.error().message));
    if (!names.insert(key.name).second)
      return invalid(concat("line ", number, " has the name of an earlier line"));
    if (keys.size() == kMaxKeys) return invalid(concat("more than ", kMaxKeys, " keys"));
    keys.push_back(std::move(key));
  }
  return keys;
}

Result<std::string> read_key_file(const std::string& path) {
  return read_file(path, "--api-keys", kMostFileBytes);
}

std::string make_key() { return "sluice-" + random_hex(32); }

std::string_view bearer_in(std::string_view authorization) noexcept {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return {};
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    const char c = authorization[i];
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower != kScheme[i]) return {};
  }
  authorization.remove_prefix(kScheme.size());
  authorization.remove_prefix(std::min(authorization.find_first_not_of(' '), authorization.size()));
  return authorization;
}

KeyRing::KeyRing()
    : own_key_(make_key()),
      own_(std::make_shared<const ApiKey>(
          ApiKey{.name = "(self)", .hash = sha256(own_key_), .limits = {.trusted = true}})),
      anybody_(std::make_shared<const ApiKey>()),
      keys_(std::make_shared<const std::vector<ApiKey>>()) {}

KeyRing::~KeyRing() = default;

Result<std::unique_ptr<KeyRing>> KeyRing::load(const std::string& path) {
  if (path.empty()) return std::make_unique<KeyRing>();
  auto content = read(path);
  if (!content) return tl::unexpected(std::move(content.error()));
  auto ring = std::make_unique<KeyRing>();
  ring->path_ = path;
  ring->required_ = true;
  ring->seen_ = content->version;
  const MutexLock lock(ring->mutex_);
  ring->keys_ = std::make_shared<const std::vector<ApiKey>>(std::move(content->keys));
  return ring;
}

std::shared_ptr<const ApiKey> KeyRing::find(std::string_view bearer) const noexcept {
  if (!required_) return anybody_;
  const Sha256 hash = sha256(bearer);
  std::shared_ptr<const std::vector<ApiKey>> keys;
  {
    const MutexLock lock(mutex_);
    keys = keys_;
  }
  const auto equals = [&hash](const ApiKey& key) {
    return CRYPTO_memcmp(hash.data(), key.hash.data(), hash.size()) == 0;
  };
  const ApiKey* found = nullptr;
  for (const ApiKey& key : *keys) found = equals(key) ? &key : found;
  if (equals(*own_)) return own_;
  if (found == nullptr) return nullptr;
  return {std::move(keys), found};
}

std::size_t KeyRing::metered() const noexcept {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(keys_->begin(), keys_->end(), [](const ApiKey& key) {
        const KeyLimits& limits = key.limits;
        return limits.requests_per_minute != 0 || limits.tokens_per_minute != 0 ||
               limits.streams != 0;
      }));
}

bool KeyRing::refresh() noexcept try {
  if (!required_) return false;
  const FileVersion now = file_version(path_);
  if (now == seen_) return false;
  auto content = read(path_);
  if (!content) {
    seen_ = now;
    log_error("keys", concat(content.error().message, "; the keys stay as they were"));
    return false;
  }
  seen_ = content->version;
  log_info("keys", concat("read ", content->keys.size(), " keys from ", path_));
  const MutexLock lock(mutex_);
  keys_ = std::make_shared<const std::vector<ApiKey>>(std::move(content->keys));
  return true;
} catch (const std::exception&) {
  return false;  // out of memory: the next refresh tries again
}

// The version is taken before the text, so that a change in between is seen by the next refresh.
Result<KeyRing::Content> KeyRing::read(const std::string& path) {
  Content content;
  content.version = file_version(path);
  const auto text = read_key_file(path);
  if (!text) return tl::unexpected(text.error());
  auto keys = parse_keys(*text);
  if (!keys) return invalid(concat(path, " (--api-keys): ", keys.error().message));
  content.keys = std::move(*keys);
  return content;
}

}  // namespace sluice
