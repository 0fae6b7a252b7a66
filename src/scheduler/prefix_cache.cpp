#include "scheduler/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sluice {
namespace {

// Copying a sequence's KV costs about as much as computing a few tokens (docs/decisions/023).
constexpr std::int32_t kFewestCopied = 8;

}  // namespace

std::int32_t common_prefix(std::span<const Token> a, std::span<const Token> b) noexcept {
  const std::size_t most = std::min(a.size(), b.size());
  const auto end = a.begin() + static_cast<std::ptrdiff_t>(most);
  return static_cast<std::int32_t>(std::mismatch(a.begin(), end, b.begin()).first - a.begin());
}

PrefixCache::PrefixCache(Engine& engine, std::uint32_t slots) : engine_(engine) {
  empty_.reserve(slots);
  for (std::uint32_t i = slots; i > 0; --i)
    empty_.push_back(Slot{static_cast<std::int32_t>(i - 1)});
}

PrefixCache::Taken PrefixCache::take(std::string_view scope, std::span<const Token> tokens,
                                     Source running) {
  CHECK(!tokens.empty(), "there is something to compute");
  const auto usable = tokens.first(tokens.size() - 1);
  auto best = kept_.end();
  std::int32_t shared = 0;
  for (auto it = kept_.begin(); it != kept_.end(); ++it) {
    if (it->scope != scope) continue;
    const std::int32_t common = common_prefix(it->tokens, usable);
    if (common > 0 && common >= shared) best = it, shared = common;
  }
  running.tokens = std::min(running.tokens, static_cast<std::int32_t>(usable.size()));
  const bool goes_on =
      best != kept_.end() && 2 * static_cast<std::size_t>(shared) >= best->tokens.size();
  const bool last_slot = best != kept_.end() && free_slots() == 1;
  if ((goes_on || last_slot) && running.tokens < shared + kFewestCopied)
    return truncate(best, shared);

  const bool from_running = running.tokens >= shared;
  const Source source = from_running ? running : Source{best->slot, shared};
  if (source.tokens < kFewestCopied) return {take_empty(), 0};
  // What is to be copied is not what gives way.
  if (!from_running) std::rotate(best, best + 1, kept_.end());
  const Slot slot = take_empty();
  return {slot, engine_.copy_prefix(source.slot, slot, source.tokens) ? source.tokens : 0};
}

Slot PrefixCache::take_empty() {
  CHECK(free_slots() > 0, "there is a free slot");
  if (empty_.empty()) (void)drop_oldest();
  const Slot slot = empty_.back();
  empty_.pop_back();
  return slot;
}

void PrefixCache::put(Slot slot, std::string scope, std::vector<Token> tokens) {
  CHECK(!tokens.empty(), "an empty slot is put back as such");
  kept_tokens_ += tokens.size();
  kept_.push_back({slot, std::move(scope), std::move(tokens)});
}

void PrefixCache::put_empty(Slot slot) {
  engine_.release(slot);
  empty_.push_back(slot);
}

bool PrefixCache::drop_oldest() {
  if (kept_.empty()) return false;
  put_empty(remove(kept_.begin()));
  return true;
}

Slot PrefixCache::remove(Place place) {
  const Slot slot = place->slot;
  kept_tokens_ -= place->tokens.size();
  kept_.erase(place);
  return slot;
}

// A text that goes on from what is kept takes its slot.
PrefixCache::Taken PrefixCache::truncate(Place place, std::int32_t tokens) {
  const Slot slot = remove(place);
  if (engine_.keep_prefix(slot, tokens)) return {slot, tokens};
  engine_.release(slot);
  return {slot, 0};
}

}  // namespace sluice
