// FairQueue: the sequences that wait for a slot, in the order in which they are to get one: by
// priority, then whoever's flow has been served least, then by arrival. A flow is a client (its
// key, or else its session), and what it has been served is counted in tokens as the engine
// computes them: the virtual token counter of Sheng et al., "Fairness in Serving Large Language
// Models" (OSDI 2024). So a client with a hundred requests takes turns with one that has a single
// one, and whoever was away has nothing saved up. Bounded by Admission: a flow is kept as long as
// it has a request. Thread: engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace sluice {

struct Sequence;

class FairQueue {
 public:
  // By priority, then by arrival, then by choice.
  using Key = std::tuple<std::int32_t, std::uint64_t, std::uint32_t>;
  using Waiting = std::map<Key, Sequence*>;

  struct Flow {
    std::string name;
    std::uint64_t served = 0;  // in tokens of prompt, or kGeneratedWeight for each generated one
    std::size_t requests = 0;
    Waiting waiting;
  };

  // A generated token costs the engine more than one of a prompt (the paper's weight).
  static constexpr std::uint64_t kGeneratedWeight = 2;

  // A request of this flow has come; it leaves when it has ended. The flow is valid until then.
  [[nodiscard]] Flow& join(std::string_view name);
  void leave(Flow& flow);

  void add(Flow& flow, Key key, Sequence& sequence);
  void remove(Flow& flow, Key key);

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // A walk through all that wait, as if each were served as it is met. The queue must not change
  // during it.
  class Walk {
   public:
    explicit Walk(FairQueue& queue);
    // Null at the end.
    [[nodiscard]] Sequence* next();

   private:
    struct Head {
      const Flow* flow;
      Waiting::const_iterator at;
      std::uint64_t served;
    };
    [[nodiscard]] static bool later(const Head& a, const Head& b) noexcept;
    std::vector<Head> heads_;  // a heap, the next one first
  };

 private:
  [[nodiscard]] std::uint64_t least_served() const noexcept;

  std::unordered_map<std::string, Flow> flows_;
  std::size_t size_ = 0;
  std::uint64_t last_served_ = 0;  // of the flow that was the last to wait
};

}  // namespace sluice
