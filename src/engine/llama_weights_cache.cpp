#include "engine/llama_weights_cache.h"

#include <fcntl.h>
#include <llama.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "base/concat.h"
#include "base/fnv1a.h"
#include "base/log.h"
#include "engine/llama_log.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kComponent = "weights";
constexpr std::size_t kEndBytes = std::size_t{1} << 20;  // of the file, at either end, in its name
constexpr std::size_t kMostBufferBytes = std::size_t{256} << 20;  // of llama.cpp, for one tensor

std::string reason(int error) { return std::error_code(error, std::generic_category()).message(); }

std::string in_hex(const Fnv1a& hash) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash.value()));
  return text.data();
}

// What tells this file from what it was before it changed, without reading all of it.
Result<std::string> identity(const std::string& model) {
  struct stat status {};
  std::ifstream file(model, std::ios::binary);
  if (!file || stat(model.c_str(), &status) != 0) return invalid("the file can't be read");
  Fnv1a hash;
  hash.add(concat(status.st_size, ';'));
  hash.add(concat(status.st_mtim.tv_sec, ';'));
  hash.add(concat(status.st_mtim.tv_nsec, ';'));
  std::string bytes(std::min(kEndBytes, static_cast<std::size_t>(status.st_size)), '\0');
  const auto length = static_cast<std::streamsize>(bytes.size());
  file.read(bytes.data(), length);
  hash.add(bytes);
  file.seekg(-length, std::ios::end);
  file.read(bytes.data(), length);
  hash.add(bytes);
  if (!file) return invalid("the file can't be read");
  hash.add(llama_version());
  return in_hex(hash);
}

// The folder's lock, as long as it lives; the system releases it when a process dies.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder)
      : descriptor_(open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)),
        error_(descriptor_ < 0 ? errno : lock()) {}
  ~FolderLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  [[nodiscard]] int lock() const noexcept {
    if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno == EWOULDBLOCK) log_info(kComponent, "another process is making a copy; waiting");
    while (flock(descriptor_, LOCK_EX) != 0) {
      if (errno != EINTR) return errno;
    }
    return 0;
  }

  const int descriptor_;
  const int error_;
};

Result<void> check_room(const fs::path& folder, const std::string& model) {
  std::error_code error;
  const std::uint64_t size = fs::file_size(model, error);
  const fs::space_info space = fs::space(folder, error);
  // 8.5 bits for 4.5 are the most that a copy grows by, but for rare types.
  const std::uint64_t needed = 2 * size + WeightsCache::kRoomToLeave;
  if (error || space.available >= needed) return {};
  return fail(Code::kResourceExhausted, concat(folder.string(), " has ", space.available >> 20,
                                               " MiB free, and ", needed >> 20, " are wanted"));
}

Result<void> requantise(const std::string& from, const std::string& to, CopyType type,
                        std::uint32_t threads) {
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.ftype = type == CopyType::kQ8_0 ? LLAMA_FTYPE_MOSTLY_Q8_0 : LLAMA_FTYPE_MOSTLY_Q4_0;
  params.allow_requantize = true;
  params.nthread = static_cast<std::int32_t>(threads);
  params.max_buf_size = kMostBufferBytes;
  route_llama_log();
  const LlamaErrors errors;
  if (llama_model_quantize(from.c_str(), to.c_str(), &params) == 0) return {};
  return fail(Code::kInternal, errors.text());
}

// So that a copy which has its name has its bytes, whatever happens to the machine.
Result<void> sync(const fs::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (synced) return {};
  return fail(Code::kInternal, concat(file.string(), ": ", reason(error)));
}

}  // namespace

std::string_view name_of(CopyType type) noexcept {
  return type == CopyType::kQ8_0 ? "q8_0" : "q4_0";
}

WeightsCache::WeightsCache(fs::path folder, std::uint32_t threads)
    : folder_(std::move(folder)), threads_(threads) {}

Result<std::string> WeightsCache::find_or_make(const std::string& model, CopyType type) const {
  const Result<std::string> file = identity(model);
  if (!file) return tl::unexpected(file.error());
  const fs::path copy =
      folder_ / concat(fs::path(model).stem().string(), '-', name_of(type), '-', *file, ".gguf");
  std::error_code error;
  if (!fs::exists(copy, error)) {
    if (Result<void> made = make(model, type, copy); !made)
      return tl::unexpected(std::move(made.error()));
  }
  fs::last_write_time(copy, fs::file_time_type::clock::now(), error);  // in use: remove_oldest
  return copy.string();
}

Result<void> WeightsCache::make(const std::string& model, CopyType type,
                                const fs::path& copy) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return fail(Code::kInternal, concat(folder_.string(), ": ", error.message()));
  const FolderLock lock(folder_);
  if (lock.error() != 0)
    return fail(Code::kInternal, concat(folder_.string(), ": ", reason(lock.error())));
  if (fs::exists(copy, error)) return {};  // made while we waited

  if (Result<void> room = check_room(folder_, model); !room) return room;
  log_info(kComponent, concat("making a copy of ", model, " in ", name_of(type),
                              ", once: it will be used from now on"));
  const auto start = std::chrono::steady_clock::now();
  const fs::path fresh = folder_ / ".fresh";
  Result<void> made = requantise(model, fresh.string(), type, threads_);
  if (made) made = sync(fresh);
  if (made) {
    fs::rename(fresh, copy, error);
    if (error) made = fail(Code::kInternal, concat(copy.string(), ": ", error.message()));
  }
  if (!made) {
    fs::remove(fresh, error);
    return made;
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - start);
  log_info(kComponent, concat("made in ", took.count(), " ms"));
  remove_oldest();
  return {};
}

// Called with the folder locked.
void WeightsCache::remove_oldest() const {
  std::vector<std::pair<fs::file_time_type, fs::path>> copies;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::error_code gone;
    if (it->path().extension() == ".gguf") copies.emplace_back(it->last_write_time(gone), *it);
  }
  if (copies.size() <= kMostCopies) return;
  std::sort(copies.begin(), copies.end());
  copies.resize(copies.size() - kMostCopies);
  for (const auto& [time, path] : copies) drop(path.string());
}

void WeightsCache::drop(const std::string& copy) const noexcept {
  std::error_code error;
  std::filesystem::remove(copy, error);
}

}  // namespace sluice
