// PrefixCache: the slots that no sequence has, and the KV that was left in them. A new sequence
// gets the slot whose tokens begin as its own do; or a copy of such a beginning, where taking the
// slot itself would cost somebody else's longer text. Within one scope only: what has another scope
// is never compared. Bounded by the slots: the one unused for longest gives way. Thread: engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace sluice {

class PrefixCache {
 public:
  PrefixCache(Engine& engine, std::uint32_t slots);

  [[nodiscard]] std::size_t free_slots() const noexcept { return empty_.size() + kept_.size(); }
  // Tokens whose KV is kept in free slots.
  [[nodiscard]] std::uint64_t kept_tokens() const noexcept { return kept_tokens_; }

  // The KV of a sequence that has a slot, which others may copy.
  struct Source {
    Slot slot{};
    std::int32_t tokens = 0;  // beginning that is shared
  };
  struct Taken {
    Slot slot{};
    std::int32_t tokens = 0;  // whose KV is in it
  };
  // A free slot (there must be one) for `tokens`, of which the last is left to compute. `running`:
  // the best that a sequence with a slot has to offer.
  [[nodiscard]] Taken take(std::string_view scope, std::span<const Token> tokens, Source running);
  // A free slot without any KV.
  [[nodiscard]] Slot take_empty();

  // Gives a slot back with the KV of `tokens` in it, or with none.
  void put(Slot slot, std::string scope, std::vector<Token> tokens);
  void put_empty(Slot slot);

  // Frees the KV that was unused for longest. False: none is kept.
  bool drop_oldest();

 private:
  struct Kept {
    Slot slot{};
    std::string scope;
    std::vector<Token> tokens;  // at least one
  };
  using Place = std::vector<Kept>::iterator;

  [[nodiscard]] Slot remove(Place place);
  [[nodiscard]] Taken truncate(Place place, std::int32_t tokens);

  Engine& engine_;
  std::vector<Slot> empty_;
  std::vector<Kept> kept_;  // unused for longest first
  std::uint64_t kept_tokens_ = 0;
};

// How many tokens two texts have in common from their beginning.
[[nodiscard]] std::int32_t common_prefix(std::span<const Token> a,
                                         std::span<const Token> b) noexcept;

}  // namespace sluice
