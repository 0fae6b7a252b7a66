// WeightsCache: copies of model files with their weights in another type, in a folder of its own.
// A copy is made once, beside its place and moved there whole, under a lock that holds other
// processes off; it is found again by the file's size, time and ends, by the type, and by
// llama.cpp's version. The file itself is never changed. Bounded by kMostCopies: the one unused for
// longest goes, and whoever has it mapped keeps it; and by kRoomToLeave on the disk.
// Thread: any; it blocks while a copy is made, here or in another process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice {

enum class CopyType { kQ8_0, kQ4_0 };

// As the flag --weights calls it.
[[nodiscard]] std::string_view name_of(CopyType type) noexcept;

class WeightsCache {
 public:
  static constexpr std::size_t kMostCopies = 8;
  static constexpr std::uint64_t kRoomToLeave = std::uint64_t{1} << 30;

  // `threads` for making a copy; 0: as many as the machine has.
  WeightsCache(std::filesystem::path folder, std::uint32_t threads);

  // The copy's path. It may have been damaged since it was made. Errors: the folder can't be used,
  // or llama.cpp can't make the copy; the message says which and why.
  [[nodiscard]] Result<std::string> find_or_make(const std::string& model, CopyType type) const;

  void drop(const std::string& copy) const noexcept;

 private:
  [[nodiscard]] Result<void> make(const std::string& model, CopyType type,
                                  const std::filesystem::path& copy) const;
  void remove_oldest() const;

  const std::filesystem::path folder_;
  const std::uint32_t threads_;
};

}  // namespace sluice
