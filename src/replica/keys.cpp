#include "replica/keys.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "base/check.h"
#include "base/concat.h"
#include "base/log.h"

namespace sluice {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::int64_t kMaxFileBytes = 4 << 20;

std::optional<Sha256> parse_hash(std::string_view text) {
  Sha256 hash{};
  if (text.size() != hash.size() * 2) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    const auto digit = kHexDigits.find(lower);
    if (digit == std::string_view::npos) return std::nullopt;
    hash[i / 2] = static_cast<std::uint8_t>(hash[i / 2] << 4 | digit);
  }
  return hash;
}

bool is_name(std::string_view text) noexcept {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), allowed);
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
    std::string name;
    std::string hash;
    std::string excess;
    if (!(fields >> name) || name.front() == '#') continue;
    const bool two_fields = fields >> hash && !(fields >> excess);
    const auto parsed = parse_hash(hash);
    if (!two_fields || !is_name(name) || !parsed)
      return invalid(concat("line ", number, " is not `name sha256hex`"));
    if (!names.insert(name).second)
      return invalid(concat("line ", number, " has the name of an earlier line"));
    if (keys.size() == kMaxKeys) return invalid(concat("more than ", kMaxKeys, " keys"));
    keys.push_back({name, *parsed});
  }
  return keys;
}

std::string make_key() {
  std::array<unsigned char, 32> random{};
  CHECK(RAND_bytes(random.data(), random.size()) == 1, "a key needs random bytes");
  std::string key = "sluice-";
  for (const unsigned char byte : random) {
    key += kHexDigits[byte >> 4];
    key += kHexDigits[byte & 15];
  }
  return key;
}

KeyRing::KeyRing()
    : own_key_(make_key()),
      own_hash_(sha256(own_key_)),
      keys_(std::make_shared<const std::vector<ApiKey>>()) {}

KeyRing::~KeyRing() = default;

Result<std::unique_ptr<KeyRing>> KeyRing::load(const std::string& path) {
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

bool KeyRing::accepts(std::string_view bearer) const noexcept {
  if (!required_) return true;
  const Sha256 hash = sha256(bearer);
  std::shared_ptr<const std::vector<ApiKey>> keys;
  {
    const MutexLock lock(mutex_);
    keys = keys_;
  }
  bool found = CRYPTO_memcmp(hash.data(), own_hash_.data(), hash.size()) == 0;
  for (const ApiKey& key : *keys)
    found |= CRYPTO_memcmp(hash.data(), key.hash.data(), hash.size()) == 0;
  return found;
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
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (content.version.bytes < 0 || !file ||
      (content.version.bytes > 0 && !(text << file.rdbuf()))) {
    return fail(Code::kNotFound, concat("can't read ", path, " (--api-keys)"));
  }
  if (content.version.bytes > kMaxFileBytes)
    return invalid(concat(path, " (--api-keys) is larger than 4 MiB"));
  auto keys = parse_keys(text.str());
  if (!keys) return invalid(concat(path, " (--api-keys): ", keys.error().message));
  content.keys = std::move(*keys);
  return content;
}

}  // namespace sluice
