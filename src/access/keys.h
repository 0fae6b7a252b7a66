// KeyRing: the API keys that may call, from a file that holds a name and the SHA-256 of each key,
// never a key itself.
// File: one `name sha256hex [limits]` a line (key_limits.h); blank lines and lines that begin with
// # are skipped. A file that can't be read or parsed any more leaves the keys as they were and is
// logged. Bounded by kMaxKeys, for each bearer is compared with all of them, in constant time.
// Thread: find and required any; refresh one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "access/key_limits.h"
#include "base/error.h"
#include "base/file_version.h"
#include "base/mutex.h"

namespace sluice {

using Sha256 = std::array<std::uint8_t, 32>;

struct ApiKey {
  static constexpr std::size_t kMaxNameBytes = 64;

  std::string name;  // 1 to kMaxNameBytes of A-Z a-z 0-9 . _ -
  Sha256 hash{};
  KeyLimits limits;
};

inline constexpr std::size_t kMaxKeys = 10'000;

[[nodiscard]] Sha256 sha256(std::string_view text) noexcept;

// Errors: kInvalidArgument, with the line's number and none of its text.
[[nodiscard]] Result<std::vector<ApiKey>> parse_keys(std::string_view text);

// The text of a key file, 4 MiB at most. Errors name the file and --api-keys.
[[nodiscard]] Result<std::string> read_key_file(const std::string& path);

// A new key of 256 random bits, as text.
[[nodiscard]] std::string make_key();

// The key in "Bearer KEY" (RFC 6750; the scheme in any case), or nothing.
[[nodiscard]] std::string_view bearer_in(std::string_view authorization) noexcept;

class KeyRing {
 public:
  // Without a file: nobody needs a key.
  KeyRing();
  ~KeyRing();
  KeyRing(const KeyRing&) = delete;
  KeyRing& operator=(const KeyRing&) = delete;

  // An empty path: as without a file. Errors: kNotFound, kInvalidArgument; they name the file and
  // --api-keys.
  [[nodiscard]] static Result<std::unique_ptr<KeyRing>> load(const std::string& path);

  // Whether a call needs a key at all.
  [[nodiscard]] bool required() const noexcept { return required_; }

  // Whose key `bearer` is (bearer_in's result); null: nobody's. Without a file everybody is one
  // caller without a name and without limits.
  [[nodiscard]] std::shared_ptr<const ApiKey> find(std::string_view bearer) const noexcept
      EXCLUDES(mutex_);

  // How many of them have limits that only a gateway holds (rpm, tpm, streams).
  [[nodiscard]] std::size_t metered() const noexcept EXCLUDES(mutex_);

  // A key of this process for itself (warm-up, a gateway in the same process); it is in no file and
  // never shown. Its caller is named "(self)" and trusted.
  [[nodiscard]] const std::string& own_key() const noexcept { return own_key_; }

  // Reads the file again if it changed since the last time. True if there are other keys now.
  bool refresh() noexcept EXCLUDES(mutex_);

 private:
  struct Content {
    FileVersion version;
    std::vector<ApiKey> keys;
  };
  [[nodiscard]] static Result<Content> read(const std::string& path);

  std::string path_;
  bool required_ = false;
  std::string own_key_;
  std::shared_ptr<const ApiKey> own_;
  std::shared_ptr<const ApiKey> anybody_;
  FileVersion seen_;
  mutable Mutex mutex_;
  std::shared_ptr<const std::vector<ApiKey>> keys_ GUARDED_BY(mutex_);
};

}  // namespace sluice
