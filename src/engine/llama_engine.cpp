#include "engine/llama_engine.h"

#include <llama.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/concat.h"
#include "engine/llama_context.h"
#include "engine/llama_embedder.h"
#include "engine/llama_model.h"
#include "engine/llama_prompt.h"
#include "engine/llama_template.h"
#include "engine/llama_weights.h"
#include "engine/sampler.h"
#include "engine/sampling_pool.h"
#include "engine/slot_places.h"

namespace sluice {
namespace {

// One place more than there are slots, so that there is always room to move a sequence to.
constexpr std::uint32_t kSparePlaces = 1;
constexpr std::uint32_t kMostSlots = 256 - kSparePlaces;  // LLAMA_MAX_SEQ

// Prefill of 128 rows a step is as fast as of 512 on a processor, and lets others in four times as
// often.
constexpr std::uint32_t kBestPrefillTokens = 128;

std::size_t rows_in(const Batch& batch) {
  std::size_t rows = 0;
  for (const Work& work : batch.work) rows += work.tokens.size();
  return rows;
}

// The rows of a step as libllama takes them.
class Rows {
 public:
  explicit Rows(std::uint32_t most)
      : most_(static_cast<std::int32_t>(most)), batch_(llama_batch_init(most_, 0, 1)) {}
  ~Rows() { llama_batch_free(batch_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  void clear() noexcept { batch_.n_tokens = 0; }

  // Returns the row's number.
  std::int32_t add(Token token, std::int32_t position, llama_seq_id sequence, bool wants_logits) {
    const std::int32_t row = batch_.n_tokens++;
    CHECK(row < most_, "the scheduler keeps a step within max_step_tokens");
    batch_.token[row] = token;
    batch_.pos[row] = position;
    batch_.n_seq_id[row] = 1;
    batch_.seq_id[row][0] = sequence;
    batch_.logits[row] = wants_logits ? 1 : 0;
    return row;
  }

  [[nodiscard]] const llama_batch& batch() const noexcept { return batch_; }

 private:
  const std::int32_t most_;
  llama_batch batch_;
};

class LlamaEngine final : public Engine {
 public:
  LlamaEngine(const LlamaOptions& options, std::unique_ptr<const LlamaModel> model,
              std::unique_ptr<const LlamaTemplate> chat_template,
              std::unique_ptr<LlamaContext> context);

  const EngineInfo& info() const noexcept override { return info_; }
  Result<std::vector<Token>> tokenize(const PromptSource& source) const override {
    return prompt_.tokenize(source);
  }
  std::unique_ptr<SamplerState> make_sampler(const Sampling& sampling, std::uint32_t index,
                                             const std::vector<Token>& prompt) const override;
  void step(const Batch& batch, const AbortCheck& abort, StepResult& result) override;
  void release(Slot slot) override;
  bool copy_prefix(Slot from, Slot to, std::int32_t tokens) override;
  bool keep_prefix(Slot slot, std::int32_t tokens) override;
  Result<std::vector<float>> embed(const std::vector<Token>& tokens,
                                   const AbortCheck& abort) override {
    return embedder_.embed(tokens, abort);
  }

 private:
  // One row whose logits are wanted.
  struct Wanted {
    std::int32_t row = 0;
    std::size_t place = 0;  // of its work in the batch
    const Work* work = nullptr;
    std::span<float> logits;
  };

  void lay_out(const Batch& batch);
  void close_gap(const Batch& batch);
  [[nodiscard]] bool holds(llama_seq_id place, std::int32_t tokens) const;
  void sample(const Wanted& wanted, SamplerScratch& scratch, Sampled& out) const;
  [[nodiscard]] llama_memory_t memory() const noexcept {
    return llama_get_memory(context_->handle());
  }

  const std::unique_ptr<const LlamaModel> model_;
  const LlamaPrompt prompt_;
  const std::unique_ptr<LlamaContext> context_;
  LlamaEmbedder embedder_;
  EngineInfo info_;
  std::vector<Token> never_ending_mask_;  // suppressed tokens and those that end an answer
  SlotPlaces places_;
  const bool
      moves_pay_;  // moving a sequence costs less than the pass over the weights that it saves
  SamplingPool pool_;
  std::vector<SamplerScratch> scratch_;  // one for each thread of the pool

  // Of the step under way.
  Rows rows_;
  std::vector<Slot> active_;
  std::vector<std::size_t> order_;
  std::vector<Wanted> wanted_;
};

std::uint32_t threads_of(const LlamaOptions& options) {
  return options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
}

std::uint32_t context_of(const LlamaOptions& options, const LlamaModel& model) {
  return std::min(options.context_tokens, model.trained_context());
}

// Bytes of one sequence's KV: what a move copies, whatever part of it is in use.
std::uint64_t sequence_bytes(const LlamaOptions& options, const LlamaModel& model) {
  const auto layers = static_cast<std::uint64_t>(llama_model_n_layer(model.handle()));
  const auto heads = static_cast<std::uint64_t>(std::max(llama_model_n_head(model.handle()), 1));
  const auto kv_heads = static_cast<std::uint64_t>(llama_model_n_head_kv(model.handle()));
  const auto head_size = static_cast<std::uint64_t>(llama_model_n_embd(model.handle())) / heads;
  const std::uint64_t values = 2 * layers * kv_heads * head_size * context_of(options, model);
  return values * (options.kv_type == KvType::kF16 ? 2 : 1);
}

LlamaEngine::LlamaEngine(const LlamaOptions& options, std::unique_ptr<const LlamaModel> model,
                         std::unique_ptr<const LlamaTemplate> chat_template,
                         std::unique_ptr<LlamaContext> context)
    : model_(std::move(model)),
      prompt_(*model_, std::move(chat_template)),
      context_(std::move(context)),
      embedder_(*model_, context_of(options, *model_)),
      never_ending_mask_(model_->suppressed_tokens()),
      places_(options.slots, kSparePlaces),
      moves_pay_(!options.unified_kv &&
                 sequence_bytes(options, *model_) <= llama_model_size(model_->handle())),
      pool_(threads_of(options)),
      scratch_(pool_.threads()),
      rows_(options.max_step_tokens) {
  never_ending_mask_.insert(never_ending_mask_.end(), model_->end_tokens().begin(),
                            model_->end_tokens().end());
  info_.kind = "llama";
  info_.model = model_->name();
  info_.weights = model_->weights();
  // libllama rounds it up.
  info_.context_tokens = context_of(options, *model_);
  info_.vocabulary = model_->vocabulary();
  info_.embedding_size = model_->embedding_size();
  info_.slots = options.slots;
  info_.kv_tokens = std::uint64_t{info_.context_tokens} * (options.unified_kv ? 1 : options.slots);
  info_.longest_piece = model_->longest_piece();
  info_.best_prefill_tokens = std::min(kBestPrefillTokens, options.max_step_tokens);
  info_.keeps_prefixes = true;
  info_.has_chat_template = prompt_.has_template_of_model();
}

std::unique_ptr<SamplerState> LlamaEngine::make_sampler(const Sampling& sampling,
                                                        std::uint32_t index,
                                                        const std::vector<Token>& prompt) const {
  return std::make_unique<Sampler>(sampling, index, prompt);
}

// libllama cuts a batch wherever its sequences are not neighbours in the KV, and computes the
// pieces one after another: so rows go in the order of their places, and gaps between them are
// closed.
void LlamaEngine::lay_out(const Batch& batch) {
  for (const Work& work : batch.work) (void)places_.place_of(work.slot);
  if (moves_pay_) close_gap(batch);
  order_.resize(batch.work.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    return places_.place_of(batch.work[a].slot) < places_.place_of(batch.work[b].slot);
  });
  wanted_.clear();
  rows_.clear();
  for (const std::size_t i : order_) {
    const Work& work = batch.work[i];
    CHECK(!work.tokens.empty(), "work has at least one row");
    const std::int32_t place = places_.place_of(work.slot);
    std::int32_t row = 0;
    for (std::size_t token = 0; token < work.tokens.size(); ++token) {
      const bool last = token + 1 == work.tokens.size();
      const auto position = work.first_position + static_cast<std::int32_t>(token);
      row = rows_.add(work.tokens[token], position, place, last && work.sample);
    }
    if (work.sample) wanted_.push_back({row, i, &work, {}});
  }
  // Results go in the batch's order.
  std::sort(wanted_.begin(), wanted_.end(),
            [](const Wanted& a, const Wanted& b) { return a.place < b.place; });
}

void LlamaEngine::step(const Batch& batch, const AbortCheck& abort, StepResult& result) {
  result.sampled.clear();
  if (rows_in(batch) > llama_n_batch(context_->handle())) {
    // libllama lowers its limit to the size of the KV where that is less than max_step_tokens, and
    // would abort beyond it.
    result.status = StepStatus::kNoKvSpace;
    return;
  }
  lay_out(batch);
  result.status = context_->decode(rows_.batch(), abort, result.message);
  if (result.status != StepStatus::kDone) return;
  // Here and not in the pool: libllama sorts its output rows when it is first asked for one.
  for (Wanted& wanted : wanted_) {
    float* const logits = llama_get_logits_ith(context_->handle(), wanted.row);
    CHECK(logits != nullptr, "the row asked for its logits");
    wanted.logits = {logits, info_.vocabulary};
  }
  result.sampled.resize(wanted_.size());
  pool_.run(wanted_.size(), [&](std::size_t item, std::size_t thread) {
    sample(wanted_[item], scratch_[thread], result.sampled[item]);
  });
}

void LlamaEngine::sample(const Wanted& wanted, SamplerScratch& scratch, Sampled& out) const {
  auto* const sampler = dynamic_cast<Sampler*>(wanted.work->sampler);
  CHECK(sampler != nullptr, "work that samples has a sampler of this engine");
  const std::vector<Token>& masked =
      wanted.work->may_end ? model_->suppressed_tokens() : never_ending_mask_;
  out.token = sampler->sample(wanted.logits, masked, scratch, out.logprobs);
  if (out.token == Sampler::kNoToken) {
    out.kind = Sampled::Kind::kFailed;
    out.piece = "the model gave no finite probability to any token";
    return;
  }
  for (TokenLogprob& logprob : out.logprobs) {
    logprob.chosen.piece = model_->piece(logprob.chosen.token);
    for (TokenLogprob::Candidate& candidate : logprob.top)
      candidate.piece = model_->piece(candidate.token);
  }
  const bool ends = model_->ends_generation(out.token);
  out.kind = ends ? Sampled::Kind::kEnd : Sampled::Kind::kToken;
  out.piece = ends ? std::string_view() : model_->piece(out.token);
}

// One for each step at most, so that no step is much longer than the others.
void LlamaEngine::close_gap(const Batch& batch) {
  active_.clear();
  for (const Work& work : batch.work) active_.push_back(work.slot);
  for (const SlotPlaces::Move& move : places_.close_gap(active_)) {
    llama_memory_seq_cp(memory(), move.from, move.to, -1, -1);
    llama_memory_seq_rm(memory(), move.from, -1, -1);
  }
}

void LlamaEngine::release(Slot slot) {
  if (const auto place = places_.release(slot)) llama_memory_seq_rm(memory(), *place, -1, -1);
}

// A model with a sliding window has dropped its beginning.
bool LlamaEngine::holds(llama_seq_id place, std::int32_t tokens) const {
  return llama_memory_seq_pos_min(memory(), place) == 0 &&
         llama_memory_seq_pos_max(memory(), place) + 1 >= tokens;
}

bool LlamaEngine::copy_prefix(Slot from, Slot to, std::int32_t tokens) {
  const std::optional<llama_seq_id> source = places_.find(from);
  if (!source || !holds(*source, tokens)) return false;
  CHECK(!places_.find(to), "a prefix is copied into an empty slot");
  const llama_seq_id target = places_.place_of(to);
  // Separate KV can copy whole sequences only; what is too much goes again.
  llama_memory_seq_cp(memory(), *source, target, -1, -1);
  if (llama_memory_seq_rm(memory(), target, tokens, -1)) return true;
  release(to);
  return false;
}

bool LlamaEngine::keep_prefix(Slot slot, std::int32_t tokens) {
  const std::optional<llama_seq_id> place = places_.find(slot);
  return place && holds(*place, tokens) && llama_memory_seq_rm(memory(), *place, tokens, -1);
}

Result<void> check_options(const LlamaOptions& options) {
  if (options.slots < 1 || options.slots > kMostSlots) {
    return invalid(concat("--max-sequences: ", options.slots, " is not within 1 to ", kMostSlots));
  }
  if (options.context_tokens < 2) return invalid("--context-tokens: at least 2");
  if (options.max_step_tokens < options.slots) {
    return invalid(concat("--max-step-tokens: at least --max-sequences (", options.slots, ")"));
  }
  if (options.kv_type == KvType::kQ8_0 && !options.flash_attention) {
    return invalid("--kv-type q8_0 needs --flash-attention");
  }
  return {};
}

llama_context_params context_params(const LlamaOptions& options, const LlamaModel& model) {
  llama_context_params params = llama_context_default_params();
  const std::uint32_t context = context_of(options, model);
  const std::uint32_t places = options.slots + kSparePlaces;
  params.n_ctx = options.unified_kv ? context : context * places;
  params.n_batch = options.max_step_tokens;
  params.n_ubatch = options.max_step_tokens;
  params.n_seq_max = places;
  params.n_outputs_max = places;  // libllama measures its buffers with one for each sequence
  params.n_threads = static_cast<std::int32_t>(threads_of(options));
  params.n_threads_batch = params.n_threads;
  params.flash_attn_type =
      options.flash_attention ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.type_k = options.kv_type == KvType::kQ8_0 ? GGML_TYPE_Q8_0 : GGML_TYPE_F16;
  params.type_v = params.type_k;
  params.kv_unified = options.unified_kv;
  params.no_perf = true;
  return params;
}

}  // namespace

Result<std::unique_ptr<Engine>> make_llama_engine(const LlamaOptions& options) {
  if (Result<void> checked = check_options(options); !checked)
    return tl::unexpected(std::move(checked.error()));
  Result<std::unique_ptr<LlamaModel>> model = load_weights(options);
  if (!model) return tl::unexpected(std::move(model.error()));
  Result<std::unique_ptr<LlamaTemplate>> chat_template = LlamaTemplate::load(**model);
  if (!chat_template) {
    return fail(chat_template.error().code,
                concat("model file ", options.model_path, ": ", chat_template.error().message));
  }
  Result<std::unique_ptr<LlamaContext>> context =
      LlamaContext::make(**model, context_params(options, **model));
  if (!context) return tl::unexpected(std::move(context.error()));
  return std::make_unique<LlamaEngine>(options, std::move(*model), std::move(*chat_template),
                                       std::move(*context));
}

}  // namespace sluice
