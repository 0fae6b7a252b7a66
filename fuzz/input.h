// Input: reads a fuzzer's bytes as numbers and strings; past their end it reads zeros.
// Thread: any one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(size == 0 ? std::string_view()
                        : std::string_view(reinterpret_cast<const char*>(data), size)) {}

  [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }

  std::uint8_t byte() noexcept {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }

  // 0 to `most`.
  std::uint32_t number(std::uint32_t most) noexcept {
    const std::uint32_t low = byte();
    return (most < 256 ? low : low | static_cast<std::uint32_t>(byte()) << 8) % (most + 1);
  }

  std::string_view bytes(std::size_t most) noexcept {
    const std::string_view taken = rest_.substr(0, std::min(most, rest_.size()));
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view rest_;
};

}  // namespace sluice::fuzz
