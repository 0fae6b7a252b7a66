#include "load/workload.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/concat.h"
#include "load/load_random.h"

namespace sluice {
namespace {

// Each is one token for the vocabularies in use, with the space before it; the server's own count
// of the prompt's tokens is what the report shows.
constexpr std::array<std::string_view, 64> kWords{
    "the",  "of",   "and",   "to",    "in",    "is",    "that",  "for",  "it",   "as",   "was",
    "with", "be",   "by",    "on",    "not",   "he",    "his",   "but",  "at",   "are",  "this",
    "have", "from", "or",    "had",   "an",    "they",  "which", "one",  "you",  "were", "all",
    "her",  "she",  "there", "would", "their", "we",    "him",   "been", "has",  "when", "who",
    "will", "no",   "more",  "if",    "out",   "so",    "up",    "said", "what", "its",  "about",
    "than", "into", "them",  "can",   "only",  "other", "time",  "new",  "some"};

// LoadRandom numbers of the groups' prefixes, apart from those of requests.
constexpr std::uint64_t kPrefixStreams = std::uint64_t{1} << 62;

std::string words(LoadRandom& random, std::uint32_t tokens) {
  std::string text;
  text.reserve(std::size_t{tokens} * 5);
  for (std::uint32_t i = 0; i < tokens; ++i) {
    if (i > 0) text += ' ';
    text += kWords[random.below(kWords.size())];
  }
  return text;
}

Message text_message(Role role, std::string text) {
  Message message{.role = role, .parts = {}};
  message.parts.push_back({.bytes = std::move(text)});
  return message;
}

}  // namespace

Result<Workload> Workload::make(const WorkloadOptions& options) {
  Workload workload(options);
  if (options.prompts_text.empty()) return workload;
  auto prompts = read_prompts(options.prompts_text);
  if (!prompts) return tl::unexpected(std::move(prompts.error()));
  workload.prompts_ = std::move(*prompts);
  workload.options_.prompts_text.clear();
  return workload;
}

Workload::Workload(const WorkloadOptions& options) : options_(options) {
  if (options.shared_prefix_tokens == 0) return;
  for (std::uint32_t group = 0; group < options.prefix_groups; ++group) {
    LoadRandom random(options.seed, kPrefixStreams + group);
    prefixes_.push_back(words(random, options.shared_prefix_tokens));
  }
}

PlannedRequest Workload::request(std::uint64_t number) const {
  LoadRandom random(options_.seed, number);
  PlannedRequest planned;
  GenerationRequest& request = planned.request;
  request.model = options_.model;
  request.sampling.temperature = options_.temperature;
  if (options_.top_p) request.sampling.top_p = *options_.top_p;
  request.sampling.seed = random.next() >> 1;  // servers hold it in a signed number
  request.stopping.ignore_eos = options_.ignore_eos;
  request.stopping.max_tokens = static_cast<std::int32_t>(options_.output_tokens.draw(random));
  const double slow = random.uniform();
  const double cancelled = random.uniform();
  if (slow < options_.slow_share) planned.read_tokens_per_second = options_.slow_tokens_per_second;
  if (cancelled < options_.cancel_share) {
    if (options_.cancel_after.count() > 0) planned.cancel_after = options_.cancel_after;
    if (options_.cancel_after_tokens > 0)
      planned.cancel_after_tokens = options_.cancel_after_tokens;
  }
  add_prompt(number, random, request);
  return planned;
}

void Workload::add_prompt(std::uint64_t number, LoadRandom& random,
                          GenerationRequest& request) const {
  std::vector<Message>& messages = request.prompt.messages;
  if (!prefixes_.empty()) {
    messages.push_back(text_message(Role::kSystem, prefixes_[random.below(prefixes_.size())]));
  }
  if (prompts_.empty()) {
    messages.push_back(
        text_message(Role::kUser, words(random, options_.prompt_tokens.draw(random))));
    return;
  }
  const FilePrompt& prompt = prompts_[number % prompts_.size()];
  messages.insert(messages.end(), prompt.messages.begin(), prompt.messages.end());
  if (prompt.output_tokens) request.stopping.max_tokens = prompt.output_tokens;
}

}  // namespace sluice
